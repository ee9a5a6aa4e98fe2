import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ageCell, cell, fieldCell } from '../../../../src/cli/remote/cells.ts'
import { utcText } from '../../../../src/kit/clock.ts'
import { portalOperations } from '../../../../src/features/portal/portal-operations.ts'
import { needs } from '../../../../src/features/relay/needs.ts'

test('an age is shown in the largest unit that leaves it at least two', () => {
  const ages = [0, 119, 120, 7_199, 7_200, 172_799, 172_800, null].map((ageS) => ageCell(ageS))
  assert.deepEqual(ages, ['0 s', '119 s', '2 min', '119 min', '2 h', '47 h', '2 d', '-'])
})

test('what is unknown is a dash', () => {
  assert.deepEqual(
    [cell(null), cell(''), cell(undefined), fieldCell('time', null)],
    ['-', '-', '-', '-'],
  )
  assert.deepEqual([cell(true), cell(false), cell(0), cell('x')], ['yes', 'no', '0', 'x'])
})

test('each time of a relay and of a link is shown as a time', () => {
  const { properties } = portalOperations.listPortalLinks.result().properties.links.items
  const fields = { ...needs.relayFields().properties, ...properties }
  const times = Object.entries(fields)
    .filter(([, schema]) => JSON.stringify(schema).includes('In Unix seconds'))
    .map(([name]) => name)
  assert(times.length >= 5)
  for (const name of times) assert.equal(fieldCell(name, 0), utcText(0), name)
})
