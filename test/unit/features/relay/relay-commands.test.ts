import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { temporaryDirectory } from '../../../support/kit/temporary-directory.ts'
import { runInProcess } from '../../../support/programs/run-in-process.ts'
import { httpAnswer, Stranger } from '../../../support/programs/stranger.ts'

const works = {
  bot_id: 4711,
  from: 'https://api.telegram.org',
  state: 'polling',
  reason: null,
  since: 1_795_259_700,
  next_poll: null,
  last_update: null,
  relayed: 0,
  refused: 0,
}
const paused = {
  ...works,
  state: 'paused',
  reason: 'Somebody else polls',
  next_poll: 1_795_259_730,
}

test('relay show says on top whether the relay works, and what it waits for', async (t) => {
  const stranger = await Stranger.start(t)
  const keyFile = join(temporaryDirectory(t), 'key')
  writeFileSync(keyFile, 'a-key-of-a-test-0123456789abcdef')
  const place = [`--url=http://127.0.0.1:${stranger.port}`, `--key-file=${keyFile}`]
  for (const [relay, expected] of [
    [works, 'relay of bot 4711: works, takes updates from https://api.telegram.org; none came yet'],
    [
      { ...works, last_update: 1_795_259_730, relayed: 7 },
      'relay of bot 4711: works, takes updates from https://api.telegram.org; the last came 2026-11-21T11:15:30Z',
    ],
    [
      paused,
      'relay of bot 4711: paused, takes nothing from https://api.telegram.org: Somebody else polls; next try 2026-11-21T11:15:30Z',
    ],
  ] as const) {
    stranger.answer = httpAnswer(JSON.stringify(relay))
    const { out, err } = await runInProcess(['relay', 'show', '4711', ...place])
    assert.deepEqual([out.split('\n').slice(0, 2), err], [[expected, ''], ''])
    assert.match(out, /^bot_id +4711$/m)
  }
})
