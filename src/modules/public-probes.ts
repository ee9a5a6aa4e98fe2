/**
 * Answers `/healthz` and `/readyz` on the public listener with `--public-healthz`, for load balancers that reach only that one.
 * The status and the word are those of the private listener. What needs attention is for the operator alone and is left out:
 * names of files, shards and databases.
 *
 * Anybody can ask, so all probes of a second share one look at the state of the server, and a probe is charged to its address. But
 * it never waits for the budget: the load balancer may have the address of strangers that are over theirs, and would take the server
 * for dead. A refusal would cost as much.
 */
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import type { Clock } from '../kit/clock.ts'
import { hasBody } from '../http/body.ts'
import { endEmptyRequest } from '../http/end-empty-request.ts'
import { unavailableRetryAfterS } from '../kit/limits.ts'
import { serverOperations } from '../features/server/server-operations.ts'
import { readinessWord } from './private-api.ts'
import type { Readiness } from '../private-api/private-api-parts.ts'
import type { Log } from '../kit/surroundings.ts'

export interface PublicProbesOptions {
  /** The value of `--public-healthz`. */
  readonly isOn: boolean
  readonly clock: Clock
  readonly log: Pick<Log, 'error'>
  readiness(): Promise<Readiness>
  /** Charges the address of a request for it. */
  charge(request: IncomingMessage): void
}

/**
 * The state of the server is looked up once in this time, because that reads directories. Chosen: load balancers ask every few
 * seconds.
 */
export const readinessKeptMs = 1_000

const verbs: ReadonlySet<string | undefined> = new Set(['GET', 'HEAD'])

export class PublicProbes {
  readonly #options: PublicProbesOptions
  #look: { readonly sinceMs: number; readonly word: Promise<string> } | undefined

  constructor(options: PublicProbesOptions) {
    this.#options = options
  }

  /** Returns a listener that answers probes and passes other requests on; without the option, the given listener itself. */
  onPublic(otherwise: RequestListener): RequestListener {
    if (!this.#options.isOn) return otherwise
    return (request, response) => {
      const path = pathOf(request)
      if (path === serverOperations.checkHealth.path) {
        this.#begin(request)
        send(response, 200, 'ok')
      } else if (path === serverOperations.checkReadiness.path) {
        this.#begin(request)
        void this.#sendReadiness(response)
      } else {
        otherwise(request, response)
      }
    }
  }

  #begin(request: IncomingMessage): void {
    this.#options.charge(request)
    endEmptyRequest(request)
  }

  async #sendReadiness(response: ServerResponse): Promise<void> {
    const word = await this.#word()
    send(response, word === 'ready' ? 200 : 503, word)
  }

  /** Never rejects. A look that fails is a bug, or a disk that cannot be read: the server is not ready then. */
  #word(): Promise<string> {
    const { clock, log } = this.#options
    const nowMs = clock.monotonicMs()
    if (this.#look === undefined || nowMs - this.#look.sinceMs >= readinessKeptMs) {
      const word = this.#options.readiness().then(readinessWord, (error: unknown) => {
        log.error({ cause: String(error) }, 'the readiness of the server is not known')
        return 'unknown'
      })
      this.#look = { sinceMs: nowMs, word }
    }
    return this.#look.word
  }
}

/** Returns the path of a request that may be a probe. */
function pathOf(request: IncomingMessage): string | undefined {
  if (!verbs.has(request.method) || hasBody(request)) return undefined
  return request.url?.split('?', 1)[0]
}

function send(response: ServerResponse, status: number, word: string): void {
  if (response.destroyed) return
  const text = JSON.stringify({ status: word })
  response.writeHead(status, {
    'Content-Type': 'application/json; charset=utf-8',
    'Content-Length': text.length,
    'Cache-Control': 'no-store',
    ...(status === 503 ? { 'Retry-After': unavailableRetryAfterS } : {}),
  })
  response.end(text)
}
