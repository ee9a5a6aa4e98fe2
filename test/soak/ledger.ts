/**
 * What each process of a soak run saw, one JSON line per event, in a file outside of the server's data directory. The
 * checker uses nothing else. Times are those of the machine's monotonic clock, which all processes share.
 */
import { closeSync, openSync, readFileSync, writeSync } from 'node:fs'

export type LedgerEntry =
  | Pushing
  | { readonly kind: 'acked'; readonly name: string; readonly id: number; readonly atMs: number }
  | {
      /** The response says that nothing was stored. */
      readonly kind: 'refused'
      readonly name: string
      readonly code: string
      readonly atMs: number
    }
  | {
      /** It may be stored or not. */
      readonly kind: 'unknown'
      readonly name: string
      readonly why: string
      readonly atMs: number
    }
  | Received
  | {
      /** A getUpdates with a response has confirmed all ids below. */
      readonly kind: 'confirmed'
      readonly bot: number
      readonly offset: number
      readonly atMs: number
    }
  | {
      /** A bot has asked to drop its pending updates; it is unknown whether it got a response. */
      readonly kind: 'dropped'
      readonly bot: number
      readonly fromMs: number
      readonly toMs: number
    }
  | { readonly kind: 'fault'; readonly fault: string; readonly atMs: number }
  /** The server serves again after one or more faults. */
  | { readonly kind: 'ready'; readonly atMs: number }
  | Letter
  /** The server's log, or its end, reports something that must never happen. */
  | { readonly kind: 'broken'; readonly what: string; readonly atMs: number }
  /** The server has reported a damaged log, or one with a torn end: ids may skip ahead. */
  | { readonly kind: 'damaged' | 'torn'; readonly what: string; readonly atMs: number }

export interface Pushing {
  readonly kind: 'push'
  /** The name of the update, which is unique. */
  readonly name: string
  readonly bot: number
  readonly orderingKey: string
  readonly ttlS?: number
  /** Sent with an idempotency key, again and again until it is acknowledged. */
  readonly isKeyed: boolean
  /** Updates of one line are pushed one after the other, so their ids rise. Undefined if the push may be overtaken. */
  readonly line?: string
  readonly atMs: number
}

export interface Received {
  readonly kind: 'received'
  readonly bot: number
  readonly id: number
  /** Empty if the text is not that of any update. */
  readonly name: string
  readonly orderingKey: string
  /** `left`: still pending at the end of the run. */
  readonly via: 'poll' | 'webhook' | 'left'
  /** Whether the receiver's response took it. */
  readonly isTaken: boolean
  readonly atMs: number
}

export interface Letter {
  readonly kind: 'letter'
  readonly bot: number
  readonly id: number
  readonly name: string
  readonly reason: string
}

export function nowMs(): number {
  return Number(process.hrtime.bigint() / 1_000n) / 1_000
}

export class Ledger {
  readonly #file: number

  constructor(path: string) {
    this.#file = openSync(path, 'a', 0o600)
  }

  add(entry: LedgerEntry): void {
    writeSync(this.#file, `${JSON.stringify(entry)}\n`)
  }

  close(): void {
    closeSync(this.#file)
  }
}

export function readLedger(path: string): LedgerEntry[] {
  const lines = readFileSync(path, 'utf8').split('\n')
  return lines.filter((line) => line !== '').map((line): LedgerEntry => JSON.parse(line))
}
