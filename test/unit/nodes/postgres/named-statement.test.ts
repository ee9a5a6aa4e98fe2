import assert from 'node:assert/strict'
import { test } from 'node:test'
import { shardsMax } from '../../../../src/kit/limits.ts'
import {
  getManyStatement,
  groupStatement,
  type NamedStatement,
  rangeStatement,
} from '../../../../src/nodes/postgres/named-statement.ts'

const booleans = [true, false]

function readStatements(shard: number): NamedStatement[] {
  const ranges = ([undefined, 'u', 's', 'r'] as const).flatMap((table) =>
    booleans.flatMap((isReverse) =>
      booleans.flatMap((hasBytesMax) =>
        booleans.map((keysOnly) =>
          rangeStatement(shard, { table, isReverse, hasBytesMax, keysOnly }),
        ),
      ),
    ),
  )
  return [getManyStatement(shard), ...ranges]
}

test('statements that share a connection have the same name only if they have the same text', () => {
  const texts = new Map<string, string>()
  const names = new Map<string, string>()
  const shards = [0, 1, 10, 11, 101, shardsMax - 1]
  for (const { name, text } of shards.flatMap(readStatements)) {
    assert.equal(texts.get(name) ?? text, text, name)
    assert.equal(names.get(text) ?? name, name, text)
    texts.set(name, text)
    names.set(text, name)
  }
  // For each shard one of single keys, and for four choices of tables and two directions: keys, cut, whole.
  assert.equal(texts.size, shards.length * (1 + 4 * 2 * 3))
})

test('the two ways to write a group have names of their own', () => {
  const [plain, replacing] = [groupStatement(3, false), groupStatement(3, true)]
  assert.notEqual(plain.name, replacing.name)
  assert.notEqual(plain.text, replacing.text)
})

test('a name is at most 63 bytes long, because PostgreSQL cuts longer ones', () => {
  const last = shardsMax - 1
  const statements = [...readStatements(last), groupStatement(last, true)]
  for (const { name } of statements) assert(Buffer.byteLength(name) <= 63, name)
})
