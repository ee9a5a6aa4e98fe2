import assert from 'node:assert/strict'
import { test } from 'node:test'
import { pairText, pushCall } from '../../../../clients/typescript/push-call.ts'
import type { StreamPushOptions } from '../../../../clients/typescript/pushed-update.ts'

const odd = ['', '42', 'a"b', 'back\\slash', 'line\nend', 'tab\t', '\0', 'é😀', '\ud800', '\u2028']

test('the header of a pair is what JSON.stringify writes for its fields, whatever they contain', () => {
  const cases: StreamPushOptions[] = [
    {},
    { isTest: false },
    { isTest: true },
    ...[0, -0, 60, 1.5, -1, 1e21, Number.MAX_SAFE_INTEGER].map((ttlS) => ({ ttlS })),
    ...odd.map((orderingKey) => ({ orderingKey })),
    ...odd.map((idempotencyKey) => ({ idempotencyKey, orderingKey: 'a', ttlS: 5, isTest: true })),
  ]
  for (const botId of [1, 4_711, 2 ** 52 - 1, -1, 0.5, Number.NaN, Number.POSITIVE_INFINITY]) {
    for (const options of cases) {
      const { orderingKey, ttlS, isTest, idempotencyKey } = options
      const head = {
        bot_id: botId,
        ordering_key: orderingKey,
        idempotency_key: idempotencyKey,
        ttl: ttlS,
        test: isTest === true ? true : undefined,
      }
      assert.equal(pairText(botId, { poll: {} }, options), `${JSON.stringify(head)}\n{"poll":{}}\n`)
    }
  }
})

test('an option that is no number of seconds is refused before anything is sent', () => {
  for (const ttlS of [Number.NaN, Number.POSITIVE_INFINITY]) {
    assert.throws(() => pairText(1, { poll: {} }, { ttlS }), { code: 'BAD_REQUEST' })
  }
})

test('the place in a trace is a field of a pair and a header of a single push', () => {
  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
  const text = pairText(1, { poll: {} }, { traceparent })
  assert.equal(text, `{"bot_id":1,"traceparent":"${traceparent}"}\n{"poll":{}}\n`)
  assert.deepEqual(pushCall(1, { poll: {} }, { traceparent }).headers, { traceparent })
  assert.deepEqual(pushCall(1, { poll: {} }, {}).headers, {})
  assert.throws(() => pushCall(1, { poll: {} }, { traceparent: 'a\r\nb: c' }), {
    code: 'BAD_REQUEST',
    message: /traceparent/,
  })
})
