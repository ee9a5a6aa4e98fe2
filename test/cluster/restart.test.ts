import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startServer } from '../support/server.ts'

test('what was pushed is polled, also after a restart and after kill -9 of all processes', async (t) => {
  const server = await startServer(t)
  assert.equal(server.workerPids().length, 2)
  const { botId, token } = await server.register()
  const first = await server.push(botId, { message: { text: 'one' } })
  const second = await server.restart({ workers: 1 })
  assert.equal(second.botUrl, server.botUrl)
  assert.equal(second.key, server.key)
  const next = await second.push(botId, { message: { text: 'two' } })
  await second.kill()
  const third = await second.restart()
  const { body } = await third.call(token, 'getUpdates')
  assert.deepEqual(body, {
    ok: true,
    result: [
      { update_id: first, message: { text: 'one' } },
      { update_id: next, message: { text: 'two' } },
    ],
  })
  await third.killPrimary()
  assert.deepEqual(third.workerPids(), [])
  const last = await third.restart()
  assert.equal(await last.stop('SIGINT'), 0)
})

test('a directory made with fewer shards than there are CPUs starts without being told how many workers', async (t) => {
  const server = await startServer(t, { workers: 1, flags: ['--shards=1'] })
  const again = await server.restart({ workers: 'unset', flags: [] })
  assert.equal(again.workerPids().length, 1)
})
