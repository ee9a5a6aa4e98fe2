import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Attempt } from '../../../src/delivery/attempts/attempt.ts'
import { type DeliveryHooks, toldBy } from '../../../src/delivery/hooks.ts'
import type { DispatcherRequest } from '../../../src/delivery/webhook-services.ts'
import { Modules } from '../../../src/kit/modules.ts'

/** A queue and two modules, which write down what they are told. */
function setUp() {
  const told: string[] = []
  const own: Partial<DispatcherRequest> = {
    queueId: 4711,
    onGone: () => void told.push('queue: gone'),
    onAttemptFailed: () => void told.push('queue: failed'),
    onHealth: () => void told.push('queue: health'),
    onGoneClock: () => void told.push('queue: clock'),
  }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the rest of a request is not used
  const request = own as DispatcherRequest
  const modules = new Modules<DeliveryHooks>()
  const first: DeliveryHooks = {
    webhookTurned: ({ queueId }, { type, reason = '' }) =>
      void told.push(`first: ${queueId} ${type} ${reason}`),
    attempted: (_webhook, { updateId }, outcome) => void told.push(`first: ${updateId} ${outcome}`),
  }
  const second: DeliveryHooks = {
    attempted: (_webhook, { updateId }) => void told.push(`second: ${updateId}`),
    traceOf: () => () => 'a trace',
  }
  modules.list.push(first, second)
  return { told, request, modules, hooks: toldBy(request, modules) }
}

// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the rest of an attempt is not used
const attempt = { updateId: 7 } as Attempt

test('an attempt that ends is told to all modules in their order, after the queue if it failed', () => {
  const { told, hooks } = setUp()
  hooks.onAttempt?.(attempt, 'delivered')
  assert.deepEqual(told.splice(0), ['first: 7 delivered', 'second: 7'])
  hooks.onAttempt?.(attempt, 'rejected')
  assert.deepEqual(told, ['queue: failed', 'first: 7 rejected', 'second: 7'])
})

test('a webhook that turns is told to the modules, and its removal before it is removed', () => {
  const { told, hooks } = setUp()
  hooks.onFailing?.('no route')
  hooks.onRecovered?.()
  hooks.onGone()
  hooks.onHealth?.()
  hooks.onGoneClock(undefined)
  assert.deepEqual(told, [
    'first: 4711 webhook.failing no route',
    'first: 4711 webhook.recovered ',
    'first: 4711 webhook.removed ',
    'queue: gone',
    'queue: health',
    'queue: clock',
  ])
})

test('the first module that traces gives attempts their places, and without one nothing does', () => {
  const { hooks, request, modules } = setUp()
  assert(hooks.traceOf !== undefined)
  modules.list.pop()
  assert.equal(toldBy(request, modules).traceOf, undefined)
})
