/** A request that another worker should answer, and the error responses that this worker sends if that fails. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { type ErrorCode, PostboteError } from '../../kit/errors.ts'
import { requestIdHeader, requestIdOf } from '../../http/request-id.ts'
import type { BodyBudget } from '../../admission/budgets/body-budget.ts'
import type { RequestOrigin } from '../../http/connection-origin.ts'
import type { ListenerKind } from '../../http/listener.ts'
import type { RareWarning } from '../../process/rare-warning.ts'
import type { LearnOwner } from './owner-search.ts'
import { errorBody } from '../../http/raw-response.ts'
import type { Operation } from '../../api/operation.ts'

export interface ForwardTo {
  /** The place of this worker. Kept links to it lead to this process, so a request to it gets a new link. */
  readonly self: number
  /** Returns the place that has the shard now; undefined if none has it. */
  place(): number | undefined
  readonly learn: LearnOwner
  readonly shard: number | undefined
  readonly kind: ListenerKind
  /** The call of the private API that it is. */
  readonly call: Operation | undefined
  /** Returns which of the successive owners of the shard has it now; undefined between two of them. */
  generation(): number | undefined
  /** Returns how many processes in its place hung and were killed for it. */
  hangs(): number
  /** The body is passed on as it arrives, and the request is never sent again. */
  readonly isStreamed?: boolean
  /** The owner does not read the body (body-filter.ts), so it is dropped here and the request is forwarded without it. */
  readonly dropsBody?: boolean
  /** How long the body may take to arrive; without it, as long as the server allows any request. */
  readonly bodyWithinMs?: number | undefined
  /** Called for a request that gets an error here; undefined if nobody counts that. */
  readonly refused?: ((code: ErrorCode) => void) | undefined
  /** Counts the body while it is held here; without it, the body is not counted. */
  readonly bodies?: BodyBudget<IncomingMessage>
}

/** The origin of a request as its owner sees it: one hop more. */
export function forwardedOrigin(
  { listener, clientAddress, hops }: RequestOrigin,
  shard: number | undefined,
): RequestOrigin {
  return { listener, clientAddress, hops: hops + 1, shard }
}

export interface ForwardedExchangeParts {
  readonly incoming: IncomingMessage
  readonly response: ServerResponse
  readonly to: ForwardTo
  /** Counts the requests that are refused. */
  readonly failures: RareWarning
}

export class ForwardedExchange {
  readonly incoming: IncomingMessage
  readonly response: ServerResponse
  readonly to: ForwardTo
  readonly #failures: RareWarning

  constructor({ incoming, response, to, failures }: ForwardedExchangeParts) {
    this.incoming = incoming
    this.response = response
    this.to = to
    this.#failures = failures
  }

  /** Refuses the request. `UNAVAILABLE` is for a request that did nothing; one that may be repeated safely gets it, too. */
  refuse(code: 'UNAVAILABLE' | 'OUTCOME_UNKNOWN'): void {
    const { to, incoming } = this
    const isSafe = to.kind === 'bot' || incoming.method === 'GET' || incoming.method === 'HEAD'
    const certain = to.kind === 'bot' ? 'UNAVAILABLE' : 'STORE_UNAVAILABLE'
    const id = to.kind === 'private' ? { requestId: requestIdOf(incoming) } : {}
    this.#failures.note({ shard: to.shard, code, ...id })
    this.answer(new PostboteError(isSafe || code === 'UNAVAILABLE' ? certain : code))
  }

  answer(error: PostboteError): void {
    this.to.refused?.(error.code)
    const body = errorBody(this.to.kind, error)
    const { retryAfterS } = error
    const headers = {
      'Content-Type': 'application/json',
      'Content-Length': Buffer.byteLength(body),
      ...(this.to.kind === 'private' ? { [requestIdHeader]: requestIdOf(this.incoming) } : {}),
      ...(retryAfterS === undefined ? {} : { 'Retry-After': retryAfterS }),
    }
    this.response.writeHead(error.status, headers).end(body)
  }
}
