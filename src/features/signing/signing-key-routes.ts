/**
 * Routes for the keys that a bot's deliveries are signed with (docs/use/api.md). A key is shown once, when it is created;
 * after that only its id is shown.
 */
import { randomBytes } from 'node:crypto'
import type { FastifyInstance } from 'fastify'
import type { BotRegistry } from '../../bots/registry.ts'
import type { ResultOf } from '../../api/operation.ts'
import { signingKeyOperations } from './signing-key-operations.ts'
import type { StoredSigningKey } from '../../shard/records/bot-record.ts'
import { createSigningKey, livingKeys, withKey, withoutKey } from '../../delivery/signing-keys.ts'
import { addOperations, queueOf } from '../../private-api/add-operations.ts'

export function addSigningKeyRoutes(app: FastifyInstance, bots: BotRegistry): void {
  addOperations(app, signingKeyOperations, {
    async addSigningKey(call) {
      const queue = await queueOf(bots, call)
      const { type, overlap = 0 } = call.body
      const nowMs = queue.clock.nowMs()
      const { stored, shown } = createSigningKey(type, { nowMs, randomBytes })
      await queue.changeSigningKeys((keys) => withKey(keys, stored, { overlapS: overlap, nowMs }))
      return { key_id: stored.id, type, key: shown }
    },
    async listSigningKeys(call) {
      const { clock, settings } = await queueOf(bots, call)
      const keys = livingKeys(settings.signingKeys ?? [], clock.nowMs())
      return { signing_keys: keys.map((key) => keyJson(key)) }
    },
    async removeSigningKeys(call) {
      const queue = await queueOf(bots, call)
      let removed = 0
      await queue.changeSigningKeys((keys) => {
        removed = livingKeys(keys, queue.clock.nowMs()).length
        return []
      })
      return { removed }
    },
    async removeSigningKey(call) {
      const queue = await queueOf(bots, call)
      const { key_id: id } = call.params
      await queue.changeSigningKeys((keys) => withoutKey(keys, id, queue.clock.nowMs()))
      return { key_id: id, removed: true as const }
    },
  })
}

type SigningKeyJson = ResultOf<typeof signingKeyOperations.listSigningKeys>['signing_keys'][number]

/** Contains nothing of the key itself. */
function keyJson({ id, type, createdAtMs, endsAtMs }: StoredSigningKey): SigningKeyJson {
  return {
    key_id: id,
    type,
    created_at: Math.floor(createdAtMs / 1_000),
    ends_at: endsAtMs === undefined ? null : Math.ceil(endsAtMs / 1_000),
  }
}
