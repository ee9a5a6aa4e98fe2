import assert from 'node:assert/strict'
import { test } from 'node:test'
import { deliveryCounters } from '../../../src/cluster/webhook-factory.ts'

test('attempts are what was sent: an update dropped by its expiry is none', () => {
  const counted: string[] = []
  const counters = deliveryCounters({ add: (name, amount) => counted.push(`${name} ${amount}`) })
  counters.add('webhook_delivered', 3)
  counters.add('webhook_failed', 1)
  counters.add('webhook_expired', 1)
  assert.deepEqual(counted, ['webhook_attempts 3', 'webhook_attempts 1', 'webhook_failures 1'])
})
