/** Servers that do not belong to the nodes of a database do not start, say why, and disturb nobody. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { startCluster } from '../support/server/cluster.ts'
import { databaseWorld } from '../support/server/database.ts'
import { postbote } from '../support/programs/postbote.ts'
import { temporaryDirectory } from '../support/kit/temporary-directory.ts'

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
    [
      ['--node-name=a', `--dir=${copyOf(t, cluster.node('a').dir)}`],
      /the data directory is a copy of that of a server that is alive, .* is the node "a"/,
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
  assert.equal((await cluster.node('a').admin('GET', '/readyz')).status, 200)
  assert.doesNotMatch(cluster.node('a').output(), /another server has removed this one/)
  await database.postgres.query('CREATE ROLE limited LOGIN CONNECTION LIMIT 4')
  await database.postgres.query(
    'GRANT ALL ON ALL TABLES IN SCHEMA public TO limited',
    database.name,
  )
  const few = await postbote(['serve', ...(await cluster.refusedFlags('b'))], {
    POSTBOTE_DATABASE: database.url.replace('postbote@', 'limited@'),
  })
  assert.equal(few.code, 2, few.output)
  assert.match(
    few.output,
    /the CONNECTION LIMIT of the role limited is 4, and 8 shards, .* need 10 /,
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

/** Copies the data directory of a server that runs. */
function copyOf(t: TestContext, dir: string): string {
  const copy = join(temporaryDirectory(t), 'copy')
  execFileSync('cp', ['-a', dir, copy])
  return copy
}
