/** What relays need from a server with `--relay-from`; features/relay/relay-origins.ts implements it. */
import type { Origin, OriginUpdate } from './origin.ts'

/** An update that no queue can store. */
export interface RefusedUpdate extends Omit<OriginUpdate, 'verdict'> {
  readonly reason: string
}

export interface RelayServices {
  /** Returns a server that `--relay-from` lists. */
  originOf(from: string): Origin | undefined
  sealToken(token: string): string
  /** Returns the token; undefined if it was sealed with another admin key. */
  openToken(sealed: string): string | undefined
}
