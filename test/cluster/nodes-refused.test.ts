/** Servers that do not belong to the nodes of a database do not start, say why, and disturb nobody. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { startCluster } from '../support/cluster.ts'
import { databaseWorld, postbote } from '../support/database.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'

const world = databaseWorld()
const skip = world.obstacle

test("a server with another key, another name's node, or the database of another cluster does not start", {
  skip,
}, async (t) => {
  const database = await world.database('refusals')
  const cluster = await startCluster(t, database, { nodes: ['a'] })
  const otherKey = join(temporaryDirectory(t), 'key')
  const secret = randomBytes(32).toString('hex')
  writeFileSync(otherKey, `${secret}\n`, { mode: 0o600 })
  const nameless = [
    `--dir=${join(temporaryDirectory(t), 'data')}`,
    '--http-port=0',
    '--admin-port=0',
  ]
  const cases: readonly (readonly [readonly string[], RegExp])[] = [
    [
      [`--cluster-key-file=${otherKey}`],
      /node "a" at \S+ does not recognize this one: expected the same cluster key/,
    ],
    [[`--admin-key-file=${otherKey}`], /expected the admin key of the node "a", got another one/],
    [
      ['--node-name=a'],
      /is the node "a" of this database, too: start this one with another --node-name/,
    ],
  ]
  for (const [flags, message] of cases) {
    const args = ['serve', ...(await cluster.refusedFlags('b')), ...flags]
    const { code, output } = await postbote(args, database.env)
    assert.match(output, message)
    assert(code === 1 || code === 2, `code ${code}`)
    assert(!output.includes(secret), 'the key is shown')
  }
  const alone = await postbote(['serve', ...nameless], database.env)
  assert.match(
    alone.output,
    /has no --cluster-listen, but the database is used by another server, the node "a"/,
  )
  const { dir } = cluster.node('a')
  await cluster.node('a').stop()
  const other = await world.database('other_cluster')
  const moved = await postbote(
    ['serve', `--dir=${dir}`, '--http-port=0', '--admin-port=0'],
    other.env,
  )
  assert.equal(moved.code, 2, moved.output)
  assert.match(moved.output, /belongs to the cluster \S+, and \S+ to the cluster/)
  const { postgres, name } = database
  assert.deepEqual(await postgres.query('SELECT name FROM node', name), [])
})
