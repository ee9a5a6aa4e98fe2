import assert from 'node:assert/strict'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { parseCommand } from '../../../../src/cli/commands/parse-command.ts'
import { configOf } from '../../../../src/cli/commands/run-command.ts'
import { listBotsCommand } from '../../../../src/features/fleet/list-bots-command.ts'
import { temporaryDirectory } from '../../../support/kit/temporary-directory.ts'

test('--problems is refused with what it contradicts, before a server is asked', async (t) => {
  let calls = 0
  const run = await running(t, (_, response) => {
    calls += 1
    response.end()
  })
  for (const others of [
    ['--state', 'failing'],
    ['--sort', 'pending'],
    ['--after', '100'],
  ]) {
    await assert.rejects(run('--problems', ...others), {
      message: '--problems: expected none of --state, --sort and --after with it',
    })
  }
  assert.equal(calls, 0)
})

test('each state that needs attention is asked for, with the oldest updates first', async (t) => {
  const asked: string[] = []
  const run = await running(t, (request, response) => {
    const { searchParams } = new URL(request.url ?? '', 'http://localhost')
    asked.push(`${searchParams.get('state')} ${searchParams.get('sort')}`)
    response.setHeader('Content-Type', 'application/json')
    response.end('{"bots":[]}')
  })
  await run('--problems')
  const states = ['behind', 'conflict', 'degraded', 'failing', 'unpolled']
  assert.deepEqual(
    asked.toSorted(),
    states.map((state) => `${state} oldest_age`),
  )
})

test('--timeout ends the wait for a server that does not respond, and the error says so', async (t) => {
  const run = await running(t, () => undefined)
  await assert.rejects(
    run('--timeout', '1s'),
    /^Error: the connection to \S+ was lost \(the server does not respond\), so/,
  )
})

/** Returns what runs the command against a server that answers so. */
async function running(
  t: TestContext,
  listener: RequestListener,
): Promise<(...argv: readonly string[]) => Promise<void>> {
  const server = createServer(listener)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  const keyFile = join(temporaryDirectory(t), 'key')
  writeFileSync(keyFile, `${'k'.repeat(32)}\n`)
  const row = listBotsCommand
  assert(row.kind === 'parsed')
  const place = ['--url', `http://127.0.0.1:${port}`, '--key-file', keyFile]
  return async (...argv) => row.run(parseCommand(row, [...argv, ...place], configOf))
}
