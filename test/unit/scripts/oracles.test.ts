import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { oracles, oraclesFolder } from '../../../scripts/oracles.ts'

for (const [name, make] of Object.entries(oracles)) {
  test(`a refactoring leaves ${name} as it is`, async () => {
    const made = (await make()).split('\n')
    const kept = readFileSync(new URL(name, oraclesFolder), 'utf8').split('\n')
    assert.deepEqual(
      made,
      kept,
      'if this is meant, run ./scripts/oracles and say why in the commit',
    )
  })
}

test('every file of the oracles has something that makes it', () => {
  assert.deepEqual(readdirSync(oraclesFolder).toSorted(), Object.keys(oracles).toSorted())
})

test('the oracle of records has every kind of record that a group of operations writes', () => {
  const records = readFileSync(new URL('records.txt', oraclesFolder), 'utf8').matchAll(/^(\w) /gm)
  const kinds = new Set(Array.from(records, ([, kind = '']) => kind))
  // A `q` record is a copy of one that was damaged.
  assert.equal([...kinds].toSorted().join(''), 'abcdijklnsuvwx')
})
