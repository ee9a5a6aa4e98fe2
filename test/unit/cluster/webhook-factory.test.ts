import assert from 'node:assert/strict'
import { test } from 'node:test'
import { deliveryCounters } from '../../../src/cluster/webhook-factory.ts'
import { type Outcome, outcomes } from '../../../src/webhook/attempt-log.ts'

test('every outcome is counted, and attempts are what was tried: an update that expired was not', () => {
  const counted: string[] = []
  const counters = deliveryCounters({ add: (name, amount) => counted.push(`${name} ${amount}`) })
  const countedFor = (outcome: Outcome): string => {
    counted.length = 0
    counters.add(outcome, 3)
    return counted.join()
  }
  const failed = 'webhook_attempts 3,webhook_failures 3'
  assert.deepEqual(Object.fromEntries(outcomes.map((each) => [each, countedFor(each)])), {
    delivered: 'webhook_attempts 3',
    rejected: `${failed},webhook_rejected 3`,
    timed_out: `${failed},webhook_timed_out 3`,
    connection_failed: `${failed},webhook_connection_failed 3`,
    tls_failed: `${failed},webhook_tls_failed 3`,
    refused_for_good: `${failed},webhook_refused_for_good 3`,
    expired: '',
  })
})
