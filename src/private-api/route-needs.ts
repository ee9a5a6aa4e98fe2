/**
 * What a key needs for each route of the private API: a scope, and the bots that the call is about. The admin key needs
 * nothing of this. A route that is missing here is closed to all other keys; a test finds it.
 *
 *     push     the two routes that push updates
 *     read     everything that only reads, but not the records of shards and the keys
 *     manage   everything that changes bots, their webhooks, signing keys, dead letters, limits and pauses
 *     all      all of this, keys, and the files and records of shards
 */
import {
  type Access,
  assertAllBots,
  assertScope,
  botRefusal,
  type NeededScope,
} from '../access/access.ts'
import { PostboteError } from '../errors.ts'

export interface RouteNeeds {
  readonly scope: NeededScope
  /**
   * `one`: the bot in the path. `each`: the route checks each pair of its stream. `all`: the call tells or changes something
   * about all bots, so a key for some bots may not make it. `none`: it is about no bot.
   */
  readonly bots: 'one' | 'each' | 'all' | 'none'
}

const ofBot = (scope: NeededScope): RouteNeeds => ({ scope, bots: 'one' })
const ofAll = (scope: NeededScope): RouteNeeds => ({ scope, bots: 'all' })
const forAnyKey: RouteNeeds = { scope: 'any', bots: 'none' }

const bot = '/v1/bots/:id'

/** By verb and path of the route. */
export const routeNeeds: Readonly<Record<string, RouteNeeds>> = {
  [`POST ${bot}/updates`]: ofBot('push'),
  'POST /v1/updates': { scope: 'push', bots: 'each' },

  'GET /metrics': ofAll('read'),
  'GET /v1/bots': ofAll('read'),
  'GET /v1/summary': ofAll('read'),
  'GET /v1/nodes': ofAll('read'),
  'GET /v1/events': ofAll('read'),
  [`GET ${bot}`]: ofBot('read'),
  [`GET ${bot}/attempts`]: ofBot('read'),
  [`GET ${bot}/history`]: ofBot('read'),
  [`GET ${bot}/tail`]: ofBot('read'),
  [`GET ${bot}/limits`]: ofBot('read'),
  [`GET ${bot}/signing-keys`]: ofBot('read'),
  [`GET ${bot}/dead-letters`]: ofBot('read'),
  [`GET ${bot}/dead-letters/:update_id`]: ofBot('read'),

  'POST /v1/bots': ofAll('manage'),
  [`PATCH ${bot}`]: ofBot('manage'),
  [`DELETE ${bot}`]: ofBot('manage'),
  [`POST ${bot}/token`]: ofBot('manage'),
  [`POST ${bot}/pause`]: ofBot('manage'),
  [`POST ${bot}/resume`]: ofBot('manage'),
  [`POST ${bot}/retry`]: ofBot('manage'),
  [`PUT ${bot}/limits`]: ofBot('manage'),
  [`POST ${bot}/signing-keys`]: ofBot('manage'),
  [`DELETE ${bot}/signing-keys`]: ofBot('manage'),
  [`DELETE ${bot}/signing-keys/:key_id`]: ofBot('manage'),
  [`DELETE ${bot}/dead-letters`]: ofBot('manage'),
  [`DELETE ${bot}/dead-letters/:update_id`]: ofBot('manage'),
  [`POST ${bot}/dead-letters/replay`]: ofBot('manage'),
  [`POST ${bot}/dead-letters/:update_id/replay`]: ofBot('manage'),

  'POST /v1/keys': ofAll('all'),
  'GET /v1/keys': ofAll('all'),
  'POST /v1/keys/:key_id/rotate': ofAll('all'),
  'DELETE /v1/keys/:key_id': ofAll('all'),
  'POST /v1/shards/:shard/check': ofAll('all'),
  'GET /v1/shards/:shard/records': ofAll('all'),

  'GET /v1/openapi.json': forAnyKey,
  'GET /v1/session': forAnyKey,
  'POST /v1/session': forAnyKey,
  'DELETE /v1/session': forAnyKey,
}

/** Returns the verbs of the routes that a path belongs to. */
export function verbsAt(path: string): readonly string[] {
  const parts = path.split('/')
  return Object.keys(routeNeeds).flatMap((each) => {
    const [verb = '', route = ''] = each.split(' ')
    const names = route.split('/')
    const isHere =
      names.length === parts.length &&
      names.every((name, nth) => name.startsWith(':') || name === parts[nth])
    return isHere ? [verb] : []
  })
}

/** A request, as far as its rights depend on it. */
export interface RoutedRequest {
  readonly method: string
  /** The path of its route. */
  readonly route: string
  /** The bot in its path. */
  readonly botId: string | undefined
}

/**
 * Checks that the sender of a request may make the call.
 *
 * @throws KEY_LACKS_SCOPE, KEY_LACKS_BOT; NOT_FOUND for a route between workers
 */
export function assertMay(access: Access, { method, route, botId }: RoutedRequest): void {
  if (access === 'root') return
  const needs = routeNeeds[`${method} ${route}`]
  // Only workers call the routes between workers, and they have the admin key.
  if (needs === undefined) throw new PostboteError('NOT_FOUND')
  assertScope(access, needs.scope)
  if (needs.bots === 'all') assertAllBots(access)
  if (needs.bots !== 'one') return
  // A path that names no bot is refused by its route for any key without restrictions, and here for the others.
  const refusal = botRefusal(access, /^\d{1,16}$/.test(botId ?? '') ? Number(botId) : -1)
  if (refusal !== undefined) throw refusal
}
