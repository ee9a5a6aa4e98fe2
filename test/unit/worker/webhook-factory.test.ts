import assert from 'node:assert/strict'
import { test } from 'node:test'
import { deliveryCounters } from '../../../src/worker/webhook-factory.ts'
import { type AttemptOutcome, outcomes } from '../../../src/delivery/attempts/attempt-log.ts'

test('every outcome of an attempt is counted', () => {
  const counted: string[] = []
  const counters = deliveryCounters({
    add: (name, amount) => counted.push(`${name} ${amount}`),
    observe: () => undefined,
  })
  const countedFor = (outcome: AttemptOutcome): string => {
    counted.length = 0
    counters.add(outcome, 3)
    return counted.join()
  }
  const failed = 'webhook_attempts 3,webhook_failures 3'
  // An update that expired was not attempted: its queue counts it.
  const attempted = outcomes.filter((outcome) => outcome !== 'expired')
  assert.deepEqual(Object.fromEntries(attempted.map((each) => [each, countedFor(each)])), {
    delivered: 'webhook_attempts 3',
    rejected: `${failed},webhook_rejected 3`,
    timed_out: `${failed},webhook_timed_out 3`,
    connection_failed: `${failed},webhook_connection_failed 3`,
    tls_failed: `${failed},webhook_tls_failed 3`,
    refused_for_good: `${failed},webhook_refused_for_good 3`,
  })
})
