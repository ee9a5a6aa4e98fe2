/** Describes the route of history-routes.ts for docs/reference/openapi.json. */
import { type TSchema, Type } from 'typebox'
import { outcomes } from '../webhook/attempt-log.ts'
import { deliveryHistoryMinutes } from '../webhook/limits.ts'
import { fieldSchemas } from './field-schemas.ts'
import { json, type Operations } from './operation.ts'

const { count, orNull, time } = fieldSchemas

/** Returns the operations of these routes. */
export function historyOperations(): Operations {
  return {
    'GET /v1/bots/:id/history': {
      id: 'getHistory',
      tag: 'webhooks',
      summary: 'Returns the deliveries of the last hour, minute by minute',
      results: { 200: json(history()) },
      errors: ['UNKNOWN_BOT'],
    },
  }
}

function history(): TSchema {
  return Type.Object(
    {
      from: time('When the first minute begins.'),
      outcomes: Type.Object(
        Object.fromEntries(
          outcomes.map((outcome) => [outcome, perMinute(count('How often it occurred.'))]),
        ),
      ),
      mean_ms: responseMs('mean'),
      max_ms: responseMs('longest'),
    },
    { $id: 'DeliveryHistory', description: 'Lists with one value for each minute.' },
  )
}

function responseMs(which: string): TSchema {
  return perMinute(
    orNull(count(`The ${which} time of a response, in milliseconds; null without one.`)),
  )
}

function perMinute(value: TSchema): TSchema {
  return Type.Array(value, { minItems: deliveryHistoryMinutes, maxItems: deliveryHistoryMinutes })
}
