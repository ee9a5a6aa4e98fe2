/** Routes that set, show and remove the relay of a bot. */
import type { FastifyInstance } from 'fastify'
import type { BotRegistry } from '../../bots/registry.ts'
import type { RelayJobs } from './relay-jobs.ts'
import { serverOrigin } from '../../http/server-origin.ts'
import { relayOperations } from './relay-operations.ts'
import { addOperations, type HandledCall } from '../../private-api/add-operations.ts'
import { refusal } from '../../api/update-options.ts'

export function addRelayRoutes(
  app: FastifyInstance,
  relays: Pick<RelayJobs, 'get' | 'remove' | 'set'>,
  bots: Pick<BotRegistry, 'foreignToken'>,
): void {
  addOperations(app, relayOperations, {
    async setRelay({ params: { id }, body }) {
      const { from, token } = textsIn(body)
      const given = token === undefined ? undefined : bots.foreignToken(token)
      return { bot_id: id, ...(await relays.set(id, { from, token: given })) }
    },
    async getRelay({ params: { id } }) {
      return { bot_id: id, ...(await relays.get(id)) }
    },
    async removeRelay({ params: { id } }) {
      await relays.remove(id)
      return { bot_id: id, removed: true as const }
    },
  })
}

/** Throws BAD_REQUEST, which never shows a value: it may be a token in the wrong place. */
function textsIn({ from, token }: HandledCall<typeof relayOperations.setRelay>['body']): {
  readonly from: string
  readonly token: string | undefined
} {
  const origin = typeof from === 'string' ? serverOrigin(from) : undefined
  if (origin === undefined) {
    throw refusal('from', 'http[s]://host[:port] of a server that --relay-from lists')
  }
  if (token !== undefined && typeof token !== 'string') throw refusal('token', 'a string')
  return { from: origin, token }
}
