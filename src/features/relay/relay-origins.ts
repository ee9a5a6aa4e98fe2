/** What only a worker with `--relay-from` has: the servers that relays take updates from, and the seal of their tokens. */
import { TokenSeal } from '../../bots/token-seal.ts'
import type { WebhookNetwork } from '../../delivery/endpoint/verify.ts'
import type { Surroundings } from '../../kit/surroundings.ts'
import { HttpOrigin } from './http-origin.ts'
import type { RelayServices } from './origin.ts'
import { parseEndpoint } from '../../delivery/endpoint/endpoint.ts'

export class RelayOrigins implements RelayServices {
  readonly #origins: ReadonlyMap<string, HttpOrigin>
  readonly #seal: TokenSeal

  /** @param from - the origins of `--relay-from` */
  constructor(
    surroundings: Pick<Surroundings, 'clock' | 'log' | 'random'>,
    from: readonly string[],
    adminKey: string,
    network: WebhookNetwork,
  ) {
    this.#seal = new TokenSeal(adminKey)
    this.#origins = new Map(
      from.map((origin) => {
        // The option has refused http where it is not allowed.
        const endpoint = parseEndpoint(origin, { local: true })
        return [origin, new HttpOrigin(surroundings, endpoint, network)]
      }),
    )
  }

  originOf(from: string): HttpOrigin | undefined {
    return this.#origins.get(from)
  }

  sealToken(token: string): string {
    return this.#seal.seal(token)
  }

  openToken(sealed: string): string | undefined {
    return this.#seal.open(sealed)
  }

  async close(): Promise<void> {
    await Promise.all(Array.from(this.#origins.values(), (origin) => origin.close()))
  }
}
