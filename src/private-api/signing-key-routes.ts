/**
 * Routes for the keys that a bot's deliveries are signed with (docs/use/api.md). A key is shown once, when it is created;
 * after that only its id is shown.
 */
import { randomBytes } from 'node:crypto'
import type { FastifyInstance } from 'fastify'
import { Type } from 'typebox'
import type { BotService } from '../bots/bot-service.ts'
import { signingKeyOverlapSMax } from './limits.ts'
import type { StoredSigningKey } from '../shard/bot-record.ts'
import {
  createSigningKey,
  livingKeys,
  type SigningKeyType,
  withKey,
  withoutKey,
} from '../webhook/signing-keys.ts'
import { type OfQueue, queueOf, queueQuery } from './queue-query.ts'

export interface SigningKeyRoutesOptions {
  readonly bots: BotService
}

const newKey = Type.Object(
  {
    type: Type.Enum(['hmac-sha256', 'ed25519']),
    overlap: Type.Optional(Type.Integer({ minimum: 0, maximum: signingKeyOverlapSMax })),
  },
  { additionalProperties: false },
)
const querystring = queueQuery()

interface NewKey extends OfQueue {
  Body: { readonly type: SigningKeyType; readonly overlap?: number }
}

interface OfKey extends OfQueue {
  Params: OfQueue['Params'] & { readonly key_id: string }
}

const path = '/v1/bots/:id/signing-keys'

export function addSigningKeyRoutes(app: FastifyInstance, options: SigningKeyRoutesOptions): void {
  const { bots } = options

  app.post<NewKey>(path, { schema: { querystring, body: newKey } }, async (request) => {
    const queue = await queueOf(bots, request)
    const { type, overlap = 0 } = request.body
    const nowMs = queue.clock.nowMs()
    const { stored, shown } = createSigningKey(type, { nowMs, randomBytes })
    await queue.changeSigningKeys((keys) => withKey(keys, stored, { overlapS: overlap, nowMs }))
    return { key_id: stored.id, type, key: shown }
  })

  app.get<OfQueue>(path, { schema: { querystring } }, async (request) => {
    const { clock, settings } = await queueOf(bots, request)
    const keys = livingKeys(settings.signingKeys ?? [], clock.nowMs())
    return { signing_keys: keys.map((key) => keyJson(key)) }
  })

  app.delete<OfQueue>(path, { schema: { querystring } }, async (request) => {
    const queue = await queueOf(bots, request)
    let removed = 0
    await queue.changeSigningKeys((keys) => {
      removed = livingKeys(keys, queue.clock.nowMs()).length
      return []
    })
    return { removed }
  })

  app.delete<OfKey>(`${path}/:key_id`, { schema: { querystring } }, async (request) => {
    const queue = await queueOf(bots, request)
    const { key_id: id } = request.params
    await queue.changeSigningKeys((keys) => withoutKey(keys, id, queue.clock.nowMs()))
    return { key_id: id, removed: true }
  })
}

/** Contains nothing of the key itself. */
function keyJson({ id, type, createdAtMs, endsAtMs }: StoredSigningKey): object {
  return {
    key_id: id,
    type,
    created_at: Math.floor(createdAtMs / 1_000),
    ends_at: endsAtMs === undefined ? null : Math.ceil(endsAtMs / 1_000),
  }
}
