/** What a worker has only with `--upstream`: the services that send calls and replies on to another bot API server. */
import { TokenSeal } from '../bots/token-seal.ts'
import type { Surroundings } from '../kit/surroundings.ts'
import { UpstreamProxy } from './upstream-proxy.ts'
import { UpstreamReplies } from './upstream-replies.ts'
import type { UpstreamUrl } from '../http/server-origin.ts'

export class UpstreamServices {
  readonly proxy: UpstreamProxy
  readonly replies: UpstreamReplies
  readonly #seal: TokenSeal

  /** @param adminKey - seals the tokens that are stored */
  constructor(
    upstream: UpstreamUrl,
    adminKey: string,
    surroundings: Pick<Surroundings, 'clock' | 'counters'>,
  ) {
    const seal = new TokenSeal(adminKey)
    this.#seal = seal
    this.proxy = new UpstreamProxy(upstream, surroundings)
    this.replies = new UpstreamReplies(upstream, surroundings, (sealed) => seal.open(sealed))
  }

  sealToken(token: string): string {
    return this.#seal.seal(token)
  }

  async close(): Promise<void> {
    await Promise.all([this.proxy.close(), this.replies.close()])
  }
}
