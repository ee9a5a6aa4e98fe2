/**
 * Two nodes whose database has no room left: first for rows, which PostgreSQL refuses (53100), and then for its log, which ends
 * the server. What was accepted stays, refused pushes are not stored, and no node is started again.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startBalancedCluster } from '../support/server/cluster.ts'
import { botsOfAllShards } from '../support/server/database.ts'
import { postbote } from '../support/programs/postbote.ts'
import { Postgres, postgresObstacle } from '../support/server/postgres.ts'
import { PushLedger } from '../support/producers/push-ledger.ts'
import { SmallDisk, smallDiskObstacle } from '../support/kit/small-disk.ts'
import { until } from '../support/kit/until.ts'

const settledMsMax = 60_000
/** Few segments of the log, so that it soon needs another one. */
const settings = { min_wal_size: '32MB', max_wal_size: '48MB' }

test('a database whose disk is full loses nothing and stores nothing that was refused, and goes on when there is room', {
  skip: postgresObstacle() ?? smallDiskObstacle() ?? false,
}, async (t) => {
  const disk = await SmallDisk.start(t, { mebibytes: 160 })
  const postgres = await Postgres.start({ settings, disk })
  t.after(() => postgres.remove())
  const name = 'full_disk'
  const url = await postgres.newDatabase(name)
  const env = { POSTBOTE_DATABASE: url }
  const made = await postbote(['database', 'init', '--shards=8'], env)
  assert.equal(made.code, 0, made.output)
  const cluster = await startBalancedCluster(t, { name, url, env, postgres }, { nodes: ['a', 'b'] })
  const registered = await botsOfAllShards(cluster.node('a'))
  const ledgers = registered.map((bot) => new PushLedger(t, bot, () => cluster.any()))
  const recovered = async (): Promise<void> => {
    await Promise.all(ledgers.map((each) => each.recovered()))
  }
  await recovered()
  const pids = cluster.nodes.map((node) => node.pids())

  disk.fill()
  await until(() => ledgers.every(({ refusedCount }) => refusedCount > 0), settledMsMax)
  assert(postgres.isRunning)
  const logs = cluster.nodes.map((node) => node.output()).join('')
  assert.match(
    logs,
    /the database refused a write: could not extend file .*: No space left on device/,
  )
  disk.makeRoom()
  await recovered()

  disk.fill()
  await until(async () => {
    await postgres
      .query("SELECT pg_switch_wal(), pg_logical_emit_message(true, 'full', '')")
      .catch(() => undefined)
    return !postgres.isRunning
  }, settledMsMax)
  disk.makeRoom()
  await postgres.up()
  await recovered()

  await Promise.all(ledgers.map((each) => each.check()))
  t.diagnostic(ledgers.map(({ counts }) => counts).join('; '))
  assert.deepEqual(
    cluster.nodes.map((node) => node.pids()),
    pids,
  )
})
