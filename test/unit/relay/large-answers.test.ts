import assert from 'node:assert/strict'
import { test } from 'node:test'
import { systemClock } from '../../../src/clock.ts'
import { LargeAnswers } from '../../../src/relay/large-answers.ts'
import { relayAnswerBytesMax } from '../../../src/relay/limits.ts'
import { readOriginAnswer } from '../../../src/relay/read-origin-answer.ts'

const raw = { status: 200, retryAfter: undefined, nowMs: 0 }
const list = '{"ok":true,"result":['
const update = `${list}{"update_id":1,"message":{"chat":{"id":5},"a":`

/** Returns as many bytes as an answer may have. */
function filled(before: string, unit: string, after: string): Buffer {
  const room = relayAnswerBytesMax - before.length - after.length
  return Buffer.from(before + unit.repeat(Math.floor(room / unit.length)) + after)
}

const hostile: Readonly<Record<string, Buffer>> = {
  brackets: filled('', '[', ''),
  'brackets in an update': filled(update, '[', ''),
  'nested objects': filled('', '{"a":', ''),
  'nested objects in an update': filled(update, '{"a":', ''),
  'tiny updates': filled(list, '{"update_id":1},', '{"update_id":2}]}'),
  'a string with escapes': filled(`${update}"`, '\\n', '"}}]}'),
  'numbers in an array': filled(`${update}[`, '1,', '1]}}]}'),
  'empty strings': filled(`${update}[`, '"",', '""]}}]}'),
  'keys with escapes': filled('{"ok":true,', '"\\u0061aaaaa":1,', '"result":[]}'),
  'members of an update': filled(`${list}{"update_id":1,`, '"\\u0061":1,', '"b":1}]}'),
  'keys of a message': filled(
    `${list}{"update_id":1,"message":{`,
    '"\\u0061aaaaaa":5,',
    '"b":1}}]}',
  ),
  digits: filled(update, '1', '}}]}'),
  blanks: filled(list, ' ', ']}'),
}

/** Returns what a promise resolves to, and how often the event loop turned until then. */
async function turnsUntil<Result>(promise: Promise<Result>): Promise<[Result, number]> {
  let turns = 0
  let isOver = false
  const count = (): void => {
    turns++
    if (!isOver) systemClock.soon(count)
  }
  count()
  const result = await promise
  isOver = true
  return [result, turns]
}

test('whatever a large answer has, the event loop turns while it is read, and the result is the same', async (t) => {
  const answers = new LargeAnswers(1)
  t.after(() => answers.close())
  for (const [shape, body] of Object.entries(hostile)) {
    const [answer, turns] = await turnsUntil(answers.read({ ...raw, body }))
    // Work in one piece would leave a turn or two.
    assert(turns >= 10, `${shape}: ${turns} turns`)
    assert.deepEqual(answer, readOriginAnswer({ ...raw, body }), shape)
  }
})

test('an answer is a failure if the thread has no room for it or has ended', async () => {
  const answers = new LargeAnswers(1)
  const body = Buffer.from(`${list}]}`)
  const reads = [1, 2].map(() => answers.read({ ...raw, body }))
  const [first, second] = await Promise.all(reads)
  assert.deepEqual(first, { updates: [] })
  assert(second !== undefined && 'failure' in second)
  assert.match(second.failure.reason, /thread that reads large answers/)
  await answers.close()
  assert('failure' in (await answers.read({ ...raw, body })))
})
