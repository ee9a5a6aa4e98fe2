/**
 * The calls of the private API and the methods of the bot API with those arguments that take the most of the event loop, as far as
 * a test can set them up within seconds. One that is added to the server needs a row.
 */
import type { ApiOperations } from '../../../src/modules/api-operations.ts'

/** The bots and keys of the server that is called. */
export interface CalledFleet {
  /** A bot that keeps many updates, and one with as many that wait. */
  readonly keeping: number
  readonly waiting: number
  /** Many others. */
  readonly others: readonly number[]
  /** Keys that may be lost. */
  readonly keys: readonly string[]
}

/** What is not as in any call. */
export interface DearCall {
  /** Default: the one that keeps many updates. */
  readonly bot?: number | undefined
  /** The query, with its question mark. */
  readonly query?: string
  readonly body?: object | string
  /** The value of any further parameter of the path. */
  readonly named?: string | undefined
  /** The status of all answers, if it is not 200: of a call that this server cannot do, and refuses. */
  readonly status?: number
}

/** Returns the arguments of the nth call. */
type DearestCall = (fleet: CalledFleet, nth: number) => DearCall

const asItIs: DearestCall = () => ({})
const ofOther: DearestCall = ({ others }, nth) => ({ bot: others[nth % others.length] })
const nowhere = '9'.repeat(15)
const unused = { named: '1', status: 404 }

const byId: Readonly<Record<keyof ApiOperations, DearestCall>> = {
  pushUpdate: () => ({ body: { message: { text: 'x'.repeat(60_000) } } }),
  pushUpdates: ({ keeping }) => ({
    body: `{"bot_id":${keeping},"ttl":1}\n{"message":{"text":"x"}}\n`.repeat(500),
  }),
  tailQueue: () => ({ query: '?payload=true' }),
  listUpdates: () => ({ query: `?user=${nowhere}&limit=1000&excerpt=true` }),
  getUpdate: () => ({ named: '1', status: 404 }),
  dropUpdate: () => unused,
  eraseUpdates: (fleet, nth) => ({
    bot: nth % 2 === 0 ? fleet.keeping : fleet.waiting,
    query: `?user=${nowhere}`,
  }),
  getRetention: asItIs,
  setRetention: (fleet, nth) => ({
    ...ofOther(fleet, nth),
    body: { retain: 60, retain_bytes: 1 + nth },
  }),
  replayUpdate: () => unused,
  startReplay: () => ({ body: { dry_run: true } }),
  listReplays: asItIs,
  getReplay: () => unused,
  cancelReplay: () => unused,
  createBot: (_fleet, nth) => ({ body: { first_name: 'Same', username: `new_${nth % 2}` } }),
  registerBots: () => ({ body: '1\n'.repeat(20_000) }),
  getBot: asItIs,
  changeBot: (fleet, nth) => ({ ...ofOther(fleet, nth), body: { first_name: `Other ${nth}` } }),
  removeBot: ({ others }, nth) => ({ bot: others[others.length - 1 - (nth % others.length)] }),
  rotateToken: (fleet, nth) => ({ ...ofOther(fleet, nth), body: { overlap: 60 } }),
  listBots: () => ({ query: '?limit=1000&sort=pending&search=o&details=true' }),
  getSummary: asItIs,
  setRelay: () => ({ body: { from: 'http://127.0.0.1:1' }, status: 400 }),
  getRelay: () => ({ status: 404 }),
  removeRelay: () => ({ status: 404 }),
  setWebhook: (fleet, nth) => ({
    ...ofOther(fleet, nth),
    body: { url: `https://127.0.0.1/${'x'.repeat(2_000)}` },
    status: 400,
  }),
  changeWebhook: () => ({ body: { max_connections: 1 }, status: 404 }),
  getWebhook: asItIs,
  deleteWebhook: (fleet, nth) => ({ ...ofOther(fleet, nth), query: '?drop_pending_updates=true' }),
  listAttempts: () => ({ query: '?limit=50' }),
  checkWebhook: () => ({ status: 404 }),
  pauseBot: ofOther,
  resumeBot: ofOther,
  retryBot: asItIs,
  getLimits: asItIs,
  setLimits: (fleet, nth) => ({
    ...ofOther(fleet, nth),
    body: { deliveries_per_second: 1 + (nth % 9) },
  }),
  getHistory: asItIs,
  listDeadLetters: () => ({ query: '?limit=1000&excerpt=true' }),
  sumDeadLetters: asItIs,
  sumAllDeadLetters: asItIs,
  getDeadLetter: () => unused,
  dropDeadLetters: ofOther,
  dropDeadLetter: () => unused,
  replayDeadLetters: asItIs,
  replayDeadLetter: () => unused,
  addSigningKey: (fleet, nth) => ({ ...ofOther(fleet, nth), body: { type: 'ed25519' } }),
  listSigningKeys: ofOther,
  removeSigningKeys: ofOther,
  removeSigningKey: () => unused,
  createPortalLink: (fleet, nth) => ({ ...ofOther(fleet, nth), body: { ttl: 60 } }),
  listPortalLinks: ofOther,
  revokePortalLinks: ofOther,
  revokePortalLink: () => unused,
  pushTestUpdate: ofOther,
  followEvents: () => ({ query: '?last=1000' }),
  createKey: (_fleet, nth) => ({ body: { name: `made ${nth}`, scopes: ['read'] } }),
  listKeys: asItIs,
  rotateKey: ({ keys }, nth) => ({ named: keys[nth % keys.length], body: { overlap: 0 } }),
  revokeKey: ({ keys }, nth) => ({ named: keys[nth % keys.length] }),
  listAudit: () => ({ query: `?bot=${nowhere}&limit=1000` }),
  checkHealth: asItIs,
  checkHealthHead: asItIs,
  checkReadiness: asItIs,
  checkReadinessHead: asItIs,
  getMetrics: asItIs,
  getServerHistory: () => ({ query: '?minutes=1440' }),
  getOpenApi: asItIs,
  listUpdateTypes: asItIs,
  listNodes: asItIs,
  beginSession: asItIs,
  getSession: asItIs,
  endSession: asItIs,
  listShards: asItIs,
  checkShard: () => ({ named: '0' }),
  exportShard: (_fleet, nth) => ({ named: `${nth % 8}` }),
}

export const dearestCalls: Readonly<Record<string, DearestCall>> = byId

/** The parameters of the methods of the bot API, by their names in lower case. */
export const dearestMethods: Readonly<Record<string, object>> = {
  getupdates: { offset: -100_000, limit: 100 },
  deletewebhook: { drop_pending_updates: false },
  getwebhookinfo: {},
  getme: {},
  setwebhook: { url: `https://127.0.0.1/${'x'.repeat(2_000)}` },
  logout: {},
  close: {},
}
