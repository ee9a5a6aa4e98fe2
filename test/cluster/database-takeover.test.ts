/** Two servers for one database: the second one replaces the first if that stands still, and is refused otherwise. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { botsOfAllShards, databaseWorld, signalAll, wait } from '../support/server/database.ts'
import { postbote } from '../support/programs/postbote.ts'
import { startServer } from '../support/server/server.ts'
import { temporaryDirectory } from '../support/kit/temporary-directory.ts'

/** Longer than a node may stand still. */
const frozenMs = 4_000
const world = databaseWorld()
const skip = world.obstacle

test('a server that stands still is replaced; continued, it ends with code 1 and has accepted nothing', {
  skip,
}, async (t) => {
  const { env } = await world.database('frozen')
  const adminKeyFile = join(temporaryDirectory(t), 'key')
  writeFileSync(adminKeyFile, `${randomBytes(32).toString('hex')}\n`, { mode: 0o600 })
  const first = await startServer(t, { env, adminKeyFile, flags: ['--node-name=first'] })
  const bots = await botsOfAllShards(first)
  const before = await Promise.all(bots.map(({ botId }) => first.push(botId, { message: {} })))
  const pids = first.pids()
  signalAll(pids, 'SIGSTOP')
  const during = bots.map(({ botId }) =>
    first
      .admin('POST', `/v1/bots/${botId}/updates`, { message: { during: true } })
      .catch(() => undefined),
  )
  const polls = bots.map(({ token }) => first.call(token, 'getUpdates').catch(() => undefined))
  const [second] = await Promise.all([
    startServer(t, { env, adminKeyFile, flags: ['--node-name=second'] }),
    wait(frozenMs),
  ])
  assert.match(second.output(), /a server that has ended is removed/)
  const after = await Promise.all(bots.map(({ botId }) => second.push(botId, { message: {} })))
  signalAll(pids, 'SIGCONT')
  for (const answer of await Promise.all(during)) assert.notEqual(answer?.status, 200)
  for (const answer of await Promise.all(polls)) {
    if (answer?.status === 200) assert.deepEqual(answer.body.result, [])
  }
  assert.equal(await first.ended(), 1)
  assert.match(first.output(), /another server has removed this one/)
  for (const [nth, { token, botId }] of bots.entries()) {
    const last = await second.push(botId, { message: {} })
    const { body } = await second.call(token, 'getUpdates')
    const ids = body.result.map(({ update_id: id }: { update_id: number }) => id)
    assert.deepEqual(ids, [before[nth], after[nth], last])
  }
  // Whoever comes next is refused, and the second one does not notice.
  const args = ['serve', `--dir=${first.dir}`, '--workers=2', '--http-port=0', '--admin-port=0']
  const third = await postbote([...args, `--admin-key-file=${adminKeyFile}`], env)
  assert.equal(third.code, 1, third.output)
  assert.match(third.output, /used by another server, the node "second"/)
  const workers = second.workerPids()
  assert.equal((await second.admin('GET', '/readyz')).status, 200)
  assert.deepEqual(second.workerPids(), workers)
})
