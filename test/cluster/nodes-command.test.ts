/** `postbote nodes` and `postbote node`, with a database whose rows are made by hand. */
import assert from 'node:assert/strict'
import { hostname } from 'node:os'
import { test } from 'node:test'
import { databaseWorld, type TestDatabase } from '../support/server/database.ts'
import { postbote } from '../support/programs/postbote.ts'
import { until } from '../support/kit/until.ts'

const world = databaseWorld()
const skip = world.obstacle

/** Nodes whose rows beat until the test ends. */
async function withNodes(
  t: { after(end: () => void): void },
  { postgres, name }: TestDatabase,
  ...nodes: readonly string[]
): Promise<void> {
  for (const node of nodes) {
    await postgres.query(
      `INSERT INTO node VALUES ('${node}', '${node}-boot', 0, '${node}:8450', 2, 'serving')`,
      name,
    )
  }
  const names = nodes.map((node) => `'${node}'`).join(', ')
  const timer = setInterval(() => {
    postgres.query(`UPDATE node SET beat = beat + 1 WHERE name IN (${names})`, name).catch(() => {})
  }, 100)
  t.after(() => clearInterval(timer))
}

test('nodes shows the nodes and the owners of the shards', { skip }, async (t) => {
  const database = await world.database('shown')
  const { env, postgres, name } = database
  const empty = await postbote(['nodes'], env)
  assert.equal(empty.code, 0, empty.output)
  assert.match(empty.output, /^no node uses this database\n\nshards +owner +epoch\n0-7 +none +0\n$/)
  await withNodes(t, database, 'a')
  await postgres.query(
    `INSERT INTO node VALUES ('still', 'still-boot', 7, '', 1, 'leaving');
    UPDATE shard SET node = 'a', boot = 'a-boot', epoch = 2 WHERE shard < 5;
    UPDATE shard SET node = 'gone', boot = 'gone-boot', epoch = 9 WHERE shard = 6`,
    name,
  )
  const { code, output } = await postbote(['nodes'], env)
  assert.equal(code, 0, output)
  assert.deepEqual(
    output.split('\n').map((line) => line.replace(/ +/g, ' ')),
    [
      'node state heartbeat shards workers address',
      'a serving alive 5 2 a:8450',
      'still leaving stands still 0 1 -',
      '',
      'shards owner epoch last_owner',
      '0-4 a 2 -',
      '5 none 0 -',
      '6 none 9 gone',
      '7 none 0 -',
      '',
    ],
  )
  const json = JSON.parse((await postbote(['nodes', '--json'], env)).out)
  assert.deepEqual(
    json.nodes.map((node: { node: string; shards: number }) => [node.node, node.shards]),
    [
      ['a', 5],
      ['still', 0],
    ],
  )
  const csv = await postbote(['nodes', '--output=csv', '--columns=node,state'], env)
  assert.equal(csv.out, 'node,state\r\na,serving\r\nstill,leaving\r\n')
})

test('node drain tells a node to leave, shows its progress and waits for its end', {
  skip,
}, async (t) => {
  const database = await world.database('drained')
  const { env, postgres, name } = database
  await withNodes(t, database, 'a', 'b')
  const owns = (node: string, where: string): Promise<unknown> =>
    postgres.query(`UPDATE shard SET node = '${node}', boot = '${node}-boot' WHERE ${where}`, name)
  await owns('a', 'shard < 4')
  const draining = postbote(['node', 'drain', 'a'], env)
  await until(async () => {
    const [row] = await postgres.query("SELECT state FROM node WHERE name = 'a'", name)
    return row?.['state'] === 'leaving'
  })
  await owns('b', 'shard < 2')
  await new Promise((resolve) => setTimeout(resolve, 600))
  await owns('b', 'shard < 4')
  await postgres.query("DELETE FROM node WHERE name = 'a'", name)
  const { code, output } = await draining
  assert.equal(code, 0, output)
  assert.match(output, /4 shards: 0%\n.*4 shards: 50%\n.*4 shards: 100%\nthe node "a" has left\n$/s)
})

test('node drain and undrain take the name of this node, and say what is wrong', {
  skip,
}, async (t) => {
  const database = await world.database('refused')
  const { env, postgres, name } = database
  await withNodes(t, database, 'a', hostname())
  const stateOf = async (node: string): Promise<unknown> =>
    (await postgres.query(`SELECT state FROM node WHERE name = '${node}'`, name))[0]?.['state']
  await postgres.query("UPDATE node SET state = 'leaving'", name)
  for (const [args, code, expected] of [
    [['undrain'], 0, `the node ${JSON.stringify(hostname())} stays\n`],
    [['undrain', '--node-name=a'], 0, 'the node "a" stays\n'],
    [['drain', 'nobody'], 1, `no node "nobody": the nodes are "a", `],
    [['undrain', 'nobody'], 1, `no node "nobody": the nodes are "a", `],
    [['stop'], 2, 'expected drain or undrain'],
    [['drain', 'a', 'b'], 2, 'belongs to no option'],
  ] as const) {
    const end = await postbote(['node', ...args], env)
    assert.equal(end.code, code, end.output)
    assert(end.output.includes(expected), end.output)
  }
  assert.deepEqual([await stateOf('a'), await stateOf(hostname())], ['serving', 'serving'])
  await postgres.query("UPDATE node SET state = 'leaving' WHERE name = 'a'", name)
  const refused = await postbote(['node', 'drain'], env)
  assert.equal(refused.code, 1, refused.output)
  assert.match(refused.output, /no other node can take .*: "a" is leaving, too/)
  assert.equal(await stateOf(hostname()), 'serving')
})

test('a database that is missing or has no tables is an error of every command', {
  skip,
}, async () => {
  const { env } = await world.database('vacant', 0)
  for (const args of [['nodes'], ['node', 'drain'], ['node', 'undrain']]) {
    const none = await postbote(args)
    assert.deepEqual([none.code, /--database: expected/.test(none.output)], [2, true], none.output)
    const empty = await postbote(args, env)
    assert.deepEqual([empty.code, /database init/.test(empty.output)], [1, true], empty.output)
  }
  const help = await postbote(['node', '--help'])
  assert.match(help.output, /postbote node drain \[NAME\] --database URL/)
})
