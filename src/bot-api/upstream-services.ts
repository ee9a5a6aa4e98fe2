/** What a worker has only with `--upstream`: the services that send calls and replies on to another bot API server. */
import { TokenSeal } from '../bots/token-seal.ts'
import type { Clock } from '../kit/clock.ts'
import type { Counters } from '../kit/counters.ts'
import { UpstreamProxy } from './upstream-proxy.ts'
import { UpstreamReplies } from './upstream-replies.ts'
import type { UpstreamUrl } from '../api/upstream-url.ts'

export interface UpstreamServicesOptions {
  readonly upstream: UpstreamUrl
  readonly adminKey: string
  readonly clock: Clock
  readonly counters: Counters
}

export class UpstreamServices {
  readonly proxy: UpstreamProxy
  readonly replies: UpstreamReplies
  readonly #seal: TokenSeal

  constructor({ upstream, adminKey, clock, counters }: UpstreamServicesOptions) {
    const seal = new TokenSeal(adminKey)
    this.#seal = seal
    this.proxy = new UpstreamProxy({ upstream, clock, counters })
    this.replies = new UpstreamReplies({
      upstream,
      clock,
      counters,
      openToken: (sealed) => seal.open(sealed),
    })
  }

  sealToken(token: string): string {
    return this.#seal.seal(token)
  }

  async close(): Promise<void> {
    await Promise.all([this.proxy.close(), this.replies.close()])
  }
}
