/**
 * Decides for a request that will be forwarded whether its owner reads the body, so that the bodies of clients without a
 * token or key take no memory here. If not, a request to the bot API is forwarded without its body: the owner's refusal is
 * the same in text and pacing. A request to the private API is refused here.
 *
 * These are the checks that the owner makes before it reads a body. For the bot API: the shape, filter and checksum (unless
 * another server may have made it) of the token, the verb, and the method name. For the private API: the Host and the key. What
 * only the owner knows is not checked here, such as whether a well-formed token belongs to a bot.
 */
import type { IncomingMessage } from 'node:http'
import { portalSecretIn } from '../api/portal-secret.ts'
import { parseToken, type TokenFilter } from '../api/token.ts'
import { PostboteError } from '../kit/errors.ts'
import {
  botIdOfPortalCall,
  isPortalTarget,
  targetOf,
  isForUpstream,
  runsMethods,
} from '../http/target.ts'
import { requestOrigin } from '../http/connection-origin.ts'
import type { ListenerKind } from '../http/listener.ts'

export interface BodyFilterOptions {
  /** What refuses callers of the private API, by throwing. */
  readonly guard: {
    checkHost(host: string | undefined): void
    checkAccess(request: IncomingMessage): unknown
  }
  readonly filter: TokenFilter | undefined
  /** The value of `--foreign-tokens`. */
  readonly takesForeignTokens?: boolean
  /** Methods that this server does not have are passed on, with their bodies. */
  readonly hasUpstream: boolean
}

export class BodyFilter {
  readonly #options: BodyFilterOptions

  constructor(options: BodyFilterOptions) {
    this.#options = options
  }

  /**
   * @param isRemote - Whether the owner is on another node. It may have `--foreign-tokens` already, and without its body a
   *   setWebhook would be a deleteWebhook, so the checksum does not count.
   */
  isWanted(kind: ListenerKind, request: IncomingMessage, isRemote = false): boolean {
    const { url = '/', headers } = request
    // Without `--portal`, the public listener refuses such a path whatever its body is.
    if (isPortalTarget(url)) {
      return portalSecretIn(headers.authorization)?.botId === botIdOfPortalCall(url)
    }
    try {
      if (kind === 'private') this.#checkCaller(request)
      return kind === 'private' || this.#isWantedByBot(request, isRemote)
    } catch (error) {
      if (error instanceof PostboteError) return false
      throw error
    }
  }

  /** Throws the error that the private API throws. */
  #checkCaller(request: IncomingMessage): void {
    const { guard } = this.#options
    if (requestOrigin(request)?.clientAddress !== '') guard.checkHost(request.headers.host)
    guard.checkAccess(request)
  }

  /** Throws the error that the bot API throws. */
  #isWantedByBot(request: IncomingMessage, isRemote: boolean): boolean {
    const { filter, takesForeignTokens, hasUpstream } = this.#options
    const target = targetOf(request)
    if (target.kind === 'unknown' || (!hasUpstream && isForUpstream(request))) return false
    if (target.kind === 'method' && !runsMethods(request)) return false
    parseToken(target.token, filter, isRemote || takesForeignTokens)
    return true
  }
}
