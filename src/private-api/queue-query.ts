/**
 * Calls about one queue of a bot: `/v1/bots/:id/...`, where `?test=true` selects the queue of its /test/ namespace.
 * Unknown parameters are refused, because with a misspelled `test` the call would affect the queue of real users.
 */
import { type TObject, type TProperties, Type } from 'typebox'
import type { BotQueue } from '../bots/bot-queue.ts'
import type { BotService } from '../bots/bot-service.ts'
import { botIdParam } from './bot-id-param.ts'

export interface OfQueue {
  Params: { readonly id: string }
  Querystring: { readonly test: boolean }
}

/** Returns the schema for the query of such a call. `more` has the fields that only this call has. */
export function queueQuery(more: TProperties = {}): TObject {
  const test = Type.Boolean({ default: false })
  return Type.Object({ test, ...more }, { additionalProperties: false })
}

interface Asked {
  readonly params: OfQueue['Params']
  readonly query: OfQueue['Querystring']
}

/** Rejects with BAD_REQUEST or UNKNOWN_BOT. */
export async function queueOf(bots: BotService, { params, query }: Asked): Promise<BotQueue> {
  return bots.queueOf(botIdParam(params.id), query.test)
}
