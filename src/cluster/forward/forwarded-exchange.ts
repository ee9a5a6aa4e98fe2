/** A request that another worker should answer, and the answers that are given here where it cannot. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { PostboteError } from '../../errors.ts'
import type { BodyBudget } from '../../http/body-budget.ts'
import type { ListenerKind } from '../listener.ts'
import type { Log } from '../log.ts'
import { errorBody } from '../connection/raw-answer.ts'

export interface ForwardTo {
  readonly worker: number
  readonly kind: ListenerKind
  /** Which of the successive processes in that worker's place owns the bot now; undefined between two of them. */
  generation(): number | undefined
  /** How many processes in that place hung and were killed for it. */
  hangs(): number
  /** Its body is passed on as it comes, and it is never sent again. */
  readonly isStreamed?: boolean
  /** On a connection of its own. */
  readonly isFresh?: boolean
  /** The owner will not read its body (body-judge.ts): nobody does, and it is forwarded without one. */
  readonly dropsBody?: boolean
  /** How long its body may take to arrive; absent: as long as the server lets any request take. */
  readonly bodyWithinMs?: number | undefined
  /** Counts the body while it is held here; absent: nothing does. */
  readonly bodies?: BodyBudget<IncomingMessage>
}

export interface ForwardedExchangeParts {
  readonly incoming: IncomingMessage
  readonly response: ServerResponse
  readonly to: ForwardTo
  readonly log: Log
}

export class ForwardedExchange {
  readonly incoming: IncomingMessage
  readonly response: ServerResponse
  readonly to: ForwardTo
  readonly #log: Log

  constructor({ incoming, response, to, log }: ForwardedExchangeParts) {
    this.incoming = incoming
    this.response = response
    this.to = to
    this.#log = log
  }

  /** `UNAVAILABLE` where nothing happened, or where it may be asked again without harm. */
  refuse(code: 'UNAVAILABLE' | 'OUTCOME_UNKNOWN'): void {
    const { to, incoming } = this
    const isSafe = to.kind === 'bot' || incoming.method === 'GET' || incoming.method === 'HEAD'
    const certain = to.kind === 'bot' ? 'UNAVAILABLE' : 'STORE_UNAVAILABLE'
    this.#log.warn({ worker: to.worker, code }, 'a request could not be forwarded to its owner')
    this.answer(new PostboteError(isSafe || code === 'UNAVAILABLE' ? certain : code))
  }

  answer(error: PostboteError): void {
    const body = errorBody(this.to.kind, error)
    const { retryAfterS } = error
    const headers = {
      'Content-Type': 'application/json',
      'Content-Length': Buffer.byteLength(body),
      ...(retryAfterS === undefined ? {} : { 'Retry-After': retryAfterS }),
    }
    this.response.writeHead(error.status, headers).end(body)
  }
}
