/** Describes the routes of webhook-routes.ts for docs/reference/openapi.json. */
import { type TSchema, Type } from 'typebox'
import { fieldSchemas } from './field-schemas.ts'
import { deliveriesPerSecondMax, deliveriesPerSecondMin } from './limits.ts'
import { json, type Operations } from './operation.ts'

const { count, orNull, preciseTime, updateId } = fieldSchemas

/** Returns the operations of these routes. */
export function webhookOperations(): Operations {
  const isPaused = Type.Object(
    { paused: Type.Boolean() },
    { $id: 'PauseState', description: 'The state after the call. It is on disk.' },
  )
  const retried = Type.Object(
    { retried_keys: count('How many ordering keys have waited for a retry.') },
    { $id: 'RetriedKeys', description: 'What is tried now.' },
  )
  return {
    'GET /v1/bots/:id/attempts': {
      id: 'listAttempts',
      tag: 'webhooks',
      summary: 'Returns the last attempts to deliver to the webhook',
      results: { 200: json(attemptList()) },
      errors: ['UNKNOWN_BOT'],
    },
    'POST /v1/bots/:id/pause': {
      id: 'pauseBot',
      tag: 'webhooks',
      summary: 'Stops deliveries',
      results: { 200: json(isPaused) },
      errors: ['UNKNOWN_BOT'],
    },
    'POST /v1/bots/:id/resume': {
      id: 'resumeBot',
      tag: 'webhooks',
      summary: 'Continues deliveries',
      results: { 200: json(isPaused) },
      errors: ['UNKNOWN_BOT'],
    },
    'POST /v1/bots/:id/retry': {
      id: 'retryBot',
      tag: 'webhooks',
      summary: 'Tries failed deliveries now',
      description:
        'All ordering keys that wait for a retry are tried as soon as the pace of the endpoint permits, also past a `Retry-After`. `ordering_key` selects one. The failures of an update stay, so the next delay is no shorter.',
      results: { 200: json(retried) },
      errors: ['UNKNOWN_BOT'],
    },
    ...limitOperations(),
  }
}

function limitOperations(): Operations {
  const limit = Type.Number({
    minimum: deliveriesPerSecondMin,
    maximum: deliveriesPerSecondMax,
    description: 'The most requests that the webhook gets in a second, retries included.',
  })
  const fields = { deliveries_per_second: orNull(limit) }
  const limits = Type.Object(fields, {
    $id: 'DeliveryLimits',
    description: 'The limit, or null for none. It is on disk.',
  })
  return {
    'GET /v1/bots/:id/limits': {
      id: 'getLimits',
      tag: 'webhooks',
      summary: 'Returns the limit of deliveries per second',
      results: { 200: json(limits) },
      errors: ['UNKNOWN_BOT'],
    },
    'PUT /v1/bots/:id/limits': {
      id: 'setLimits',
      tag: 'webhooks',
      summary: 'Sets or removes the limit of deliveries per second',
      body: json(Type.Object(fields, { additionalProperties: false })),
      results: { 200: json(limits) },
      errors: ['UNKNOWN_BOT'],
    },
  }
}

function attemptList(): TSchema {
  const attempt = Type.Object(
    {
      time: preciseTime('When the attempt ended.'),
      update_id: orNull(updateId()),
      address: orNull(Type.String()),
      status: orNull(Type.Integer({ minimum: 100, maximum: 999 })),
      duration_ms: count('How long it took, in milliseconds.'),
      error: orNull(Type.String()),
      next_retry: orNull(preciseTime('When the update is tried again at the earliest.')),
    },
    { $id: 'Attempt' },
  )
  return Type.Object(
    { attempts: Type.Array(attempt) },
    { $id: 'AttemptList', description: 'The attempts, the newest first.' },
  )
}
