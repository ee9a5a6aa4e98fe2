/**
 * The API of the owner's page, below `/portal` on the private listener, and with `--portal` on the public one: the page itself,
 * and those calls of the private API that the table of operations gives to links (`portal`). It is an application of its own,
 * so that no key and no session counts here, and no link in the private API.
 *
 *     /portal/, /portal/app.js, /portal/app.css        the page, for anybody
 *     /portal/v1/bots/<bot_id>/...                     a call, with the secret of a link to this bot
 *
 * The link is checked before the body is read, and again after that, because a body takes time to arrive and a call may wait. All wrong secrets get
 * one refusal, which costs the client a slot and is paced, as with wrong tokens.
 */
import assert from 'node:assert/strict'
import type { IncomingMessage } from 'node:http'
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Access, KeyAccess } from '../api/access.ts'
import { KeyShares } from '../access/key-shares.ts'
import type { CreationGate } from '../bot-api/bot-api-handler.ts'
import { portalPrefix } from '../http/target.ts'
import type { TokenRefusals } from '../admission/token-refusals.ts'
import { portalSecretIn } from '../api/portal-secret.ts'
import { PostboteError } from '../kit/errors.ts'
import { dropBody, hasBody, mustClose } from '../http/body.ts'
import { requestIdHeader, requestIdOf } from '../http/request-id.ts'
import { fullAfter, lackMs, type TokenBucket } from '../kit/token-bucket.ts'
import { isAudited } from '../api/operation.ts'
import type { StoredPortalLink } from '../shard/records/bot-record.ts'
import type { Client } from '../http/client.ts'
import type { PortalRight } from '../kit/rights.ts'
import { endpointChecksMax } from '../delivery/endpoint-check.ts'
import { callTable } from './api-operations.ts'
import { chargeCalls, payForCall } from '../admission/budgets/charge-calls.ts'
import { addRequestAccess } from '../access/request-access.ts'
import {
  acceptAnyAsJson,
  deniedMetricOf,
  expectedOf,
  newApp,
  sendError,
} from '../private-api/new-app.ts'
import type { PrivateApiOptions } from './private-api.ts'
import { addBotRoutes } from '../features/bots/bot-routes.ts'
import { botIdParam } from '../private-api/add-operations.ts'
import { addPortalPage } from '../features/portal/portal-page.ts'
import { recordCalls } from '../private-api/record-calls.ts'
import { addTailRoutes, tailsMax } from '../features/tail/tail-routes.ts'
import { addWebhookRoutes } from '../features/bots/webhook-routes.ts'

export interface PortalApiOptions extends PrivateApiOptions {
  readonly pacing: Pick<TokenRefusals, 'hold'>
  readonly creationGate: CreationGate
  clientOf(request: IncomingMessage): Pick<Client, 'address'>
  /** Called when the refusal of this request is delayed. The returned function is called when the refusal goes out. */
  holding(request: IncomingMessage): () => void
  /** Whether the request came to the public listener. */
  isPublic(request: FastifyRequest): boolean
}

/**
 * All links of a bot may make this many calls in a second. Chosen: a page asks some times in a second; more would let one
 * take the time of others.
 */
export const portalCallsPerSecond = 20
/** All links of a bot may make this many calls at once: some pages that open. */
const portalCallsBurst = 3 * portalCallsPerSecond
/**
 * All links of a bot may make this many changes at once. Chosen: a person seldom clicks as often, and each is one of the
 * `auditCallsMax` recorded calls, which an owner could push out otherwise.
 */
export const portalChangesBurst = 30
/** After those, all links of a bot may make one change in this time. */
const portalChangeMs = 10_000
/** A worker counts the calls of this many bots. Past that it forgets them all, which lets each bot burst once more. */
const countedBotsMax = 10_000
/** A worker has this many tails of links open, beside those of keys. */
const portalTailsMax = tailsMax
/** All links of a bot may have this share of the tails of links. */
const portalTailsShare = 1 / 16
/**
 * Links have this many of the checks of a worker, which an endpoint of their owner can hold for a minute and a half. The others
 * are for keys.
 */
export const portalChecksMax = endpointChecksMax / 2
/** All links of a bot may have this share of them: one, also if it has two queues. */
const portalChecksShare = 1 / portalChecksMax

/** Who makes a call. */
interface Holder {
  readonly botId: number
  readonly link: StoredPortalLink
}

export function createPortalApi(options: PortalApiOptions): FastifyInstance {
  const guard = new PortalGuard(options)
  const app = newApp(options.calls ?? callTable)
  recordCalls(app, options)
  addRequestAccess(app)
  chargeCalls(app)
  app.addHook('onRequest', async (request, reply) => {
    void reply.headers({ 'cache-control': 'no-store', [requestIdHeader]: requestIdOf(request.raw) })
    if (!options.isPublic(request) && !options.isUnixSocket(request)) {
      options.guard.checkHost(request.headers.host)
    }
    // Nobody reads the body of what is no call: it is neither kept nor parsed.
    if (request.is404) throw new PostboteError('NOT_FOUND')
    const { operation } = request.routeOptions.config
    if (operation === undefined) return
    const { portal: right } = operation
    assert(right !== undefined, `links may make the call ${operation.id}`)
    request.access = await guard.accessOf(request)
    void reply.headers(guard.headersOf(request.access))
    guard.assertMay(request.access, { right, changes: isAudited(operation) })
    request.payer = options.payerOf(request.raw, botIdIn(request.params))
  })
  app.addHook('preHandler', async (request) => {
    const waited = await payForCall(request, options.clock)
    if (request.access === undefined) return
    if (waited || hasBody(request.raw)) await guard.accessOf(request)
  })
  app.setErrorHandler(async (error: FastifyError | PostboteError, request, reply) => {
    const expected = shownToOwner(expectedOf(error))
    if (expected.code === 'INTERNAL') {
      const requestId = requestIdOf(request.raw)
      options.log.error(
        { cause: error.stack, requestId },
        'a call of the portal failed because of a bug',
      )
    }
    const denied = deniedMetricOf[expected.code]
    if (denied !== undefined) options.counters.add(denied, 1)
    // Refusals cost the address of the client, as those of wrong secrets do: a flood of them is paced like any other.
    if (request.is404 || expected.code === 'TOO_MANY_REQUESTS') options.onRefused(request.raw)
    if (mustClose(request.raw)) void reply.header('connection', 'close')
    const shown = expected.code === 'BAD_LINK' ? await guard.refusalOf(request, reply) : expected
    if (shown.retryAfterS !== undefined) void reply.header('retry-after', shown.retryAfterS)
    return sendError(reply, shown)
  })
  addPortalPage(app, options.portal.frame)
  const addCalls = async (calls: FastifyInstance): Promise<void> => {
    acceptAnyAsJson(calls, options.bodies)
    addBotRoutes(calls, options)
    const checkPlaces = new KeyShares(portalChecksMax, portalChecksShare)
    addWebhookRoutes(calls, { ...options, checkPlaces })
    options.modules.each('addCalls', calls, options)
    const places = new KeyShares(portalTailsMax, portalTailsShare)
    addTailRoutes(calls, { ...options, keys: { ring: guard }, places })
  }
  void app.register(addCalls, { prefix: portalPrefix })
  return app
}

/** What is damaged, and where, concerns the operator only. */
function shownToOwner(error: PostboteError): PostboteError {
  return error.code === 'SHARD_BROKEN'
    ? new PostboteError('BOT_UNAVAILABLE', { cause: error })
    : error
}

/** Checks the links of requests, and counts their calls. */
class PortalGuard {
  readonly #options: PortalApiOptions
  readonly #holders = new WeakMap<KeyAccess, Holder>()
  readonly #calls = new BotRates({ costMs: 1_000 / portalCallsPerSecond, burst: portalCallsBurst })
  readonly #changes = new BotRates({ costMs: portalChangeMs, burst: portalChangesBurst })

  constructor(options: PortalApiOptions) {
    this.#options = options
  }

  /** Throws BAD_LINK, the same whatever is wrong. */
  async accessOf({ raw, params }: FastifyRequest): Promise<KeyAccess> {
    const secret = portalSecretIn(raw.headers.authorization)
    const botId = botIdIn(params)
    // The sender knows both, so an early refusal tells nothing.
    if (secret === undefined || secret.botId !== botId) throw new PostboteError('BAD_LINK')
    const [link] = await Promise.all(this.#options.modules.each('linkOf', secret))
    if (link === undefined) throw new PostboteError('BAD_LINK')
    const access = accessFor({ botId, link })
    this.#holders.set(access, { botId, link })
    return access
  }

  /** Returns the headers that tell the page what its link may do and when it ends; no call tells that. */
  headersOf(access: KeyAccess): Readonly<Record<string, string>> {
    const { can, endsAtMs } = this.#holderOf(access).link
    return {
      'postbote-link-can': can.join(','),
      'postbote-link-expires': `${Math.floor(endsAtMs / 1_000)}`,
    }
  }

  /** Throws LINK_LACKS_RIGHT; TOO_MANY_REQUESTS if the links of the bot have made too many calls. */
  assertMay(
    access: KeyAccess,
    { right, changes }: { readonly right: PortalRight; readonly changes: boolean },
  ): void {
    const { botId, link } = this.#holderOf(access)
    const nowMs = this.#options.clock.monotonicMs()
    this.#calls.take(botId, nowMs)
    if (!link.can.includes(right)) throw new PostboteError('LINK_LACKS_RIGHT', { detail: right })
    if (changes) this.#changes.take(botId, nowMs)
  }

  /** As of `AccessKeyRing`. */
  watch(access: Access, onEnd: () => void): () => void {
    assert(access !== 'root', 'a call of the portal has a link')
    const { botId, link } = this.#holderOf(access)
    const ends = this.#options.modules.each('watchLink', { botId, id: link.id }, onEnd)
    return () => {
      for (const end of ends) end()
    }
  }

  /** Resolves when the refusal may go out, to it. */
  async refusalOf({ raw }: FastifyRequest, reply: FastifyReply): Promise<PostboteError> {
    const options = this.#options
    options.onRefused(raw)
    const { address } = options.clientOf(raw)
    // Nothing reads this body, so what arrives of it while the refusal waits is discarded.
    if (hasBody(raw)) dropBody(raw)
    const slot = options.creationGate.takeCreationSlot(address, options.clock.nowMs())
    const released = options.holding(raw)
    const release = await options.pacing.hold(address)
    released()
    if (release === 'close') void reply.header('connection', 'close')
    if (slot.ok) return new PostboteError('BAD_LINK')
    return new PostboteError('TOO_MANY_REQUESTS', { retryAfterS: slot.retryAfterS })
  }

  #holderOf(access: KeyAccess): Holder {
    const holder = this.#holders.get(access)
    assert(holder !== undefined, 'the link of a call was checked')
    return holder
  }
}

/** How often something may happen, for each bot. */
class BotRates {
  readonly #costMs: number
  readonly #burstMs: number
  readonly #fullAtMs = new Map<number, TokenBucket>()

  constructor({ costMs, burst }: { readonly costMs: number; readonly burst: number }) {
    this.#costMs = costMs
    this.#burstMs = burst * costMs
  }

  /** Throws TOO_MANY_REQUESTS. */
  take(botId: number, nowMs: number): void {
    const full = fullAfter(this.#fullAtMs.get(botId) ?? 0, nowMs, this.#costMs)
    const waitMs = lackMs(full, nowMs, this.#burstMs)
    if (waitMs > 0) {
      throw new PostboteError('TOO_MANY_REQUESTS', { retryAfterS: Math.ceil(waitMs / 1_000) })
    }
    if (this.#fullAtMs.size >= countedBotsMax) this.#fullAtMs.clear()
    this.#fullAtMs.set(botId, full)
  }
}

/** What the handlers of calls see: a key without a scope, for one bot. */
function accessFor({ botId, link }: Holder): KeyAccess {
  const limits = { updatesPerSecond: undefined, requestsPerSecond: undefined, limitSlot: 0 }
  return {
    ...limits,
    id: link.id,
    name: 'portal',
    secretTag: '',
    scopes: new Set(),
    bots: new Set([botId]),
    endsAtMs: link.endsAtMs,
    // All links of a bot are one family, which shares places.
    makers: [{ ...limits, id: `bot${botId}` }],
  }
}

/** Returns the bot in the path; 0 if there is none that could be one. */
function botIdIn(params: unknown): number {
  const { id }: { readonly id?: unknown } = Object(params)
  try {
    return botIdParam(String(id))
  } catch {
    return 0
  }
}
