/** What the private API asks of the modules of a worker (kit/modules.ts). */
import type { FastifyInstance } from 'fastify'
import type { PortalSecret } from '../api/portal-secret.ts'
import type { StoredPortalLink } from '../shard/records/bot-record.ts'
import type { PrivateApiParts } from './private-api-parts.ts'

export interface ApiHooks {
  /** Adds the routes of the module's calls, and of its questions to other workers. */
  addCalls?(app: FastifyInstance, api: PrivateApiParts): void
  /** Returns fields for what a session may do. */
  sessionFields?(): object
  /** Finds the link of the owner's page that a secret is for. Rejects with BAD_LINK. */
  linkOf?(secret: PortalSecret): Promise<StoredPortalLink>
  /** Ends something long when its link ends; at once if it has ended. Returns what stops the watch. */
  watchLink?(link: { readonly botId: number; readonly id: string }, onEnd: () => void): () => void
}
