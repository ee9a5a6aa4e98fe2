import assert from 'node:assert/strict'
import { test } from 'node:test'
import { eventTarget } from '../../../../src/features/events/worker-events.ts'

const eventsUrl = 'https://alerts.example/hook'

test('each secret is a key that signs, and without an address there are none', () => {
  const eventSecrets = ['whsec_abcd', 'whsec_efgh']
  const target = eventTarget({ config: { eventsUrl }, eventSecrets }, 'east')
  assert.deepEqual(
    target?.keys.map((key) => key.secret),
    ['abcd', 'efgh'],
  )
  assert.equal(target?.idPrefix, 'event-east-')
  const none = { config: { eventsUrl: undefined }, eventSecrets: [] }
  assert.equal(eventTarget(none, undefined), undefined)
})
