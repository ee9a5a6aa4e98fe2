/** The messages between a case and the helpers that send at a steady rate. */

export interface SteadyQuestion {
  readonly port: number
  readonly adminKey: string
  readonly firstBotId: number
  readonly bots: number
  /** Ordering keys of each bot. */
  readonly keys: number
  /** Of each update; that of the samples if it is absent. */
  readonly updateBytes?: number
  readonly ratePerSecond: number
  readonly durationMs: number
}

/** The work of `undici-sender`: at the rate if there is one, otherwise as fast as possible. */
export interface SendQuestion {
  readonly origin: string
  /** PEM of the sink's certificate, for https. */
  readonly trust: string | undefined
  /** Each bot has its own connections. */
  readonly bots: number
  readonly connections: number
  readonly path: string
  readonly headers: readonly string[]
  readonly body: string
  readonly ratePerSecond: number | undefined
  readonly durationMs: number
}
