/** The calls that the page makes. The compiler compares them with the table of operations, which the page does not load. */
import type { ApiOperations } from '../../modules/api-operations.ts'
import { type InputOf, targetOf } from '../../api/target-of.ts'

const bot = '/v1/bots/:id'
const webhook = `${bot}/webhook` as const
const deadLetters = `${bot}/dead-letters` as const
const signingKeys = `${bot}/signing-keys` as const
const updates = `${bot}/updates` as const
const portal = `${bot}/portal` as const
const keys = '/v1/keys'
const session = '/v1/session'

/** By their ids, the verb and the path. */
export const pageCalls = {
  listBots: 'GET /v1/bots',
  createBot: 'POST /v1/bots',
  followEvents: 'GET /v1/events',
  getSummary: 'GET /v1/summary',
  getServerHistory: 'GET /v1/history',
  listAudit: 'GET /v1/audit',
  listNodes: 'GET /v1/nodes',
  listUpdateTypes: 'GET /v1/update-types',
  getMetrics: 'GET /metrics',
  checkReadiness: 'GET /readyz',
  getBot: `GET ${bot}`,
  changeBot: `PATCH ${bot}`,
  removeBot: `DELETE ${bot}`,
  rotateToken: `POST ${bot}/token`,
  setRelay: `PUT ${bot}/relay`,
  removeRelay: `DELETE ${bot}/relay`,
  listUpdates: `GET ${updates}`,
  getUpdate: `GET ${updates}/:update_id`,
  dropUpdate: `DELETE ${updates}/:update_id`,
  eraseUpdates: `DELETE ${updates}`,
  replayUpdate: `POST ${updates}/:update_id/replay`,
  startReplay: `POST ${updates}/replay`,
  listReplays: `GET ${bot}/replays`,
  cancelReplay: `POST ${bot}/replays/:job_id/cancel`,
  getRetention: `GET ${bot}/retention`,
  setRetention: `PUT ${bot}/retention`,
  pushUpdate: `POST ${bot}/updates`,
  pushTestUpdate: `POST ${bot}/test-update`,
  tailQueue: `GET ${bot}/tail`,
  listAttempts: `GET ${bot}/attempts`,
  getWebhook: `GET ${webhook}`,
  changeWebhook: `PATCH ${webhook}`,
  setWebhook: `PUT ${webhook}`,
  deleteWebhook: `DELETE ${webhook}`,
  checkWebhook: `POST ${webhook}/check`,
  getHistory: `GET ${bot}/history`,
  pauseBot: `POST ${bot}/pause`,
  resumeBot: `POST ${bot}/resume`,
  retryBot: `POST ${bot}/retry`,
  getLimits: `GET ${bot}/limits`,
  setLimits: `PUT ${bot}/limits`,
  addSigningKey: `POST ${signingKeys}`,
  listSigningKeys: `GET ${signingKeys}`,
  removeSigningKey: `DELETE ${signingKeys}/:key_id`,
  removeSigningKeys: `DELETE ${signingKeys}`,
  listDeadLetters: `GET ${deadLetters}`,
  sumDeadLetters: `GET ${deadLetters}/reasons`,
  sumAllDeadLetters: 'GET /v1/dead-letters/reasons',
  getDeadLetter: `GET ${deadLetters}/:update_id`,
  dropDeadLetters: `DELETE ${deadLetters}`,
  dropDeadLetter: `DELETE ${deadLetters}/:update_id`,
  replayDeadLetters: `POST ${deadLetters}/replay`,
  replayDeadLetter: `POST ${deadLetters}/:update_id/replay`,
  createPortalLink: `POST ${portal}`,
  listPortalLinks: `GET ${portal}`,
  revokePortalLink: `DELETE ${portal}/:link_id`,
  revokePortalLinks: `DELETE ${portal}`,
  listKeys: `GET ${keys}`,
  createKey: `POST ${keys}`,
  rotateKey: `POST ${keys}/:key_id/rotate`,
  revokeKey: `DELETE ${keys}/:key_id`,
  beginSession: `POST ${session}`,
  getSession: `GET ${session}`,
  endSession: `DELETE ${session}`,
} as const satisfies { readonly [Id in keyof ApiOperations]?: ApiOperations[Id]['route'] }

/** The id of a call of the page. */
export type PageCall = keyof typeof pageCalls

/** Calls that the audit does not have although they are no reads: a push, which changes no setting, and the session. */
const unrecorded: ReadonlySet<string> = new Set<PageCall>([
  'pushUpdate',
  'beginSession',
  'endSession',
])

/** Calls that the audit has and the page never makes. */
const ofOthers: readonly (keyof ApiOperations)[] = ['registerBots', 'checkShard']

/** The ids of the calls that the audit has. */
export const changingCalls: readonly string[] = [
  ...ofOthers,
  ...Object.entries(pageCalls).flatMap(([id, route]) =>
    route.startsWith('GET ') || unrecorded.has(id) ? [] : [id],
  ),
]

/** What a call of the page is made with. */
export type PageInput<Id extends PageCall> = InputOf<ApiOperations[Id]>

/** Returns the verb and the target of a call. */
export function pageCall<Id extends PageCall>(
  id: Id,
  input: PageInput<Id>,
): { readonly method: string; readonly target: string } {
  const [method = '', path = ''] = pageCalls[id].split(' ')
  return { method, target: targetOf({ path }, input) }
}

/** One queue of one bot: what a page about a bot is about. */
export interface BotQueueName {
  readonly botId: string
  readonly isTest: boolean
}

/**
 * Returns the input of a call about a queue.
 *
 * @param queue - the bot and which of its queues
 * @param query - further parameters
 */
export function ofQueue<Query extends object>(
  { botId, isTest }: BotQueueName,
  query: Query,
): { readonly id: string; readonly query: Query & { readonly test: boolean } } {
  return { id: botId, query: { ...query, test: isTest } }
}
