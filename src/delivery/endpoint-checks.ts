/** Bounds the checks of endpoints (endpoint-check.ts) that a worker makes at a time. */
import { PostboteError } from '../kit/errors.ts'

/**
 * A worker checks this many endpoints at a time, each of another queue. Chosen: a person starts one after the other. A check may
 * take a minute and a half, and costs a worker as much as a delivery with a full handshake.
 */
export const endpointChecksMax = 8
/** Most checks end in less than this. */
const endpointCheckRetryAfterS = 5

export class EndpointChecks {
  /** The queues whose endpoint is checked now. */
  readonly #queues = new Set<number>()

  /**
   * Makes a check, unless one for this queue is under way or there are too many.
   *
   * @throws TOO_MANY_REQUESTS
   */
  async run<Result>(queue: number, check: () => Promise<Result>): Promise<Result> {
    if (this.#queues.has(queue) || this.#queues.size >= endpointChecksMax) {
      throw new PostboteError('TOO_MANY_REQUESTS', { retryAfterS: endpointCheckRetryAfterS })
    }
    this.#queues.add(queue)
    try {
      return await check()
    } finally {
      this.#queues.delete(queue)
    }
  }
}
