import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ExchangeTable } from '../../../../src/links/link/exchange-table.ts'

test('an exchange is found by its number until it is deleted, once', () => {
  const table = new ExchangeTable<string>()
  table.add(2 ** 32 - 1, 'last')
  table.add(0, 'first')
  assert.deepEqual([table.size, table.get(0), table.get(2 ** 32 - 1)], [2, 'first', 'last'])
  assert.deepEqual([table.delete(0), table.delete(0), table.get(0)], [true, false, undefined])
  assert.deepEqual([table.size, table.values()], [1, ['last']])
})

test('a table that is cleared returns what it had', () => {
  const table = new ExchangeTable<string>()
  for (const exchange of [3, 1, 2]) table.add(exchange, `no ${exchange}`)
  assert.deepEqual(table.clear().toSorted(), ['no 1', 'no 2', 'no 3'])
  assert.deepEqual([table.size, table.values(), table.get(1)], [0, [], undefined])
})

test('numbers begin again after 32 bits, and pass by 0 and those that are open', () => {
  const table = new ExchangeTable<string>(0xff_ff_ff_fe)
  table.add(1, 'stream')
  assert.deepEqual([table.nextNumber(), table.nextNumber()], [0xff_ff_ff_ff, 2])
})
