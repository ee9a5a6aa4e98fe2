import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ask, botOf, startCluster } from './support.ts'

test('a connection goes to the owner of its bot, and its next request for another is forwarded', async (t) => {
  const cluster = await startCluster(t)
  for (const worker of [0, 1]) {
    const answer = await ask({ address: cluster.port('bot'), path: `/bot${botOf(worker)}:x/echo` })
    const seen = JSON.parse(answer.body)
    assert.equal(seen.worker, worker)
    assert.equal(seen.origin.hops, 0)
    assert.equal(seen.origin.peerAddress, '127.0.0.1')
  }
})
