/**
 * Says of a request that is to be forwarded whether its owner will read the body. If not, the request is forwarded
 * without one: the owner refuses it exactly as it would have, in text and in pacing, and no body of somebody who has
 * neither a token nor the key takes memory here.
 *
 * The checks are those that the owner makes before it reads: of the bot API the shape, filter and checksum of the
 * token, the verb and the name of the method, of the private API the Host and the key. What only the owner knows, such as
 * whether a well-formed token is a bot's, is not asked here.
 */
import type { IncomingMessage } from 'node:http'
import type { AdminGuard } from '../../private-api/admin-guard.ts'
import { parseToken, type TokenFilter } from '../../bots/token.ts'
import { PostboteError } from '../../errors.ts'
import { isForeign, runsMethods } from '../../bot-api/own-methods.ts'
import { parseTarget } from '../../bot-api/target.ts'
import { requestOrigin } from '../connection/connection-origin.ts'
import type { ListenerKind } from '../listener.ts'

export interface BodyJudgeOptions {
  readonly guard: AdminGuard
  readonly filter: TokenFilter | undefined
  /** Methods that this server does not have are passed on, with their bodies. */
  readonly hasUpstream: boolean
}

export class BodyJudge {
  readonly #options: BodyJudgeOptions

  constructor(options: BodyJudgeOptions) {
    this.#options = options
  }

  isWanted(kind: ListenerKind, request: IncomingMessage): boolean {
    try {
      if (kind === 'private') this.#checkCaller(request)
      return kind === 'private' || this.#isWantedByBot(request)
    } catch (error) {
      if (error instanceof PostboteError) return false
      throw error
    }
  }

  /** Throws as the private API does. */
  #checkCaller(request: IncomingMessage): void {
    const { guard } = this.#options
    if (requestOrigin(request)?.clientAddress !== '') guard.checkHost(request.headers.host)
    guard.checkKey(request.headers.authorization)
  }

  /** Throws as the bot API does. */
  #isWantedByBot(request: IncomingMessage): boolean {
    const { filter, hasUpstream } = this.#options
    const { url = '/' } = request
    const target = parseTarget(url)
    if (target.kind === 'unknown' || (!hasUpstream && isForeign(url))) return false
    if (target.kind === 'method' && !runsMethods(request)) return false
    parseToken(target.token, filter)
    return true
  }
}
