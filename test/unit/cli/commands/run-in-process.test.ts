import assert from 'node:assert/strict'
import { test } from 'node:test'
import { postbote, postboteProcess } from '../../../support/programs/postbote.ts'

const calls: readonly (readonly [readonly string[], NodeJS.ProcessEnv?])[] = [
  [['--version']],
  [['help', 'push']],
  [['no-such-command']],
  [['nodes']],
  [['nodes'], { POSTBOTE_DATABASE: 'no-address' }],
  [['bots', 'list', '--url=http://127.0.0.1:1', '--key-file=/no/such/file']],
  [['completion', 'bash']],
]

test('commands that run at once in the process of a test end as processes do, each with its own output', async () => {
  const processes = await Promise.all(calls.map(([args, env]) => postboteProcess(args, env)))
  const before = [process.exitCode, process.env['POSTBOTE_DATABASE']]
  const ends = await Promise.all([...calls, ...calls].map(([args, env]) => postbote(args, env)))
  assert.deepEqual(ends, [...processes, ...processes])
  assert.deepEqual(
    processes.map(({ code }) => code),
    [0, 0, 2, 2, 2, 1, 0],
  )
  assert.deepEqual([process.exitCode, process.env['POSTBOTE_DATABASE']], before)
})
