import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readinessTexts } from '../../../../src/page/server/readiness-text.ts'

const damage = { file: 'shards/2/CURRENT', reason: 'does not name a MANIFEST' }

test('a server that is well needs no sentence', () => {
  assert.deepEqual(readinessTexts({ status: 'ready' }), [])
})

test('a shard that is set aside is named with its file and with what to do', () => {
  assert.deepEqual(readinessTexts({ status: 'ready', broken_shards: [{ shard: 2, ...damage }] }), [
    'The bots of shard 2 are refused, because damaged files are set aside (shards/2/CURRENT: does not name a MANIFEST). Repair them as docs/run/trouble.md describes.',
  ])
})

test('the damage of a shard that is set aside is named once', () => {
  const found = [{ shard: 2, ...damage }]
  const texts = readinessTexts({ status: 'ready', broken_shards: found, damaged_files: found })
  assert.equal(texts.length, 1)
})

test('a node that other ones replace says so', () => {
  assert.deepEqual(readinessTexts({ status: 'leaving' }), [
    'Other nodes take the shards of this node, which then ends.',
  ])
})

test('everything else that needs attention has a sentence, too', () => {
  assert.deepEqual(
    readinessTexts({
      status: 'starting',
      poisoned_shards: 1,
      away_databases: [1],
      checking_shards: [3, 4],
      damaged_files: [5, 5].map((shard) => ({ shard, ...damage })),
      damaged: ['a', 'b', 'c', 'd', 'e'],
    }),
    [
      'Some shards are not served at present. Their bots wait for a worker that starts.',
      'One shard refuses changes until the disk or the database can be written again.',
      'Database 1 of several does not respond, and the bots there wait.',
      'The files of shards 3, 4 are checked before they are opened.',
      'Files of shard 5 are damaged, and the bots are still served (shards/2/CURRENT: does not name a MANIFEST, shards/2/CURRENT: does not name a MANIFEST).',
      'Damaged files were copied aside: a, b, c, and 2 more.',
    ],
  )
})
