/** The data directory that version 0.1 has written, and its contents; test/fixtures/make-data.ts creates it. */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

interface OldDataFacts {
  /** Wall time at which it was created, far in the future. */
  readonly madeAtMs: number
  readonly tokens: {
    readonly polling: string
    readonly paused: string
    readonly refused: string
    readonly removed: string
    /** The token that is running out, and its successor. */
    readonly idle: readonly [string, string]
  }
  /** Ids of the polling bot below this one are confirmed. */
  readonly firstPendingId: number
  /** The only update of the removed bot. */
  readonly removedId: number
  readonly keyedIds: Readonly<Record<'key-0' | 'key-1', number>>
  readonly webhookUrl: string
}

export const oldData = fileURLToPath(new URL('../../../../test/fixtures/data-0.1', import.meta.url))
export const oldDataFacts: OldDataFacts = JSON.parse(readFileSync(`${oldData}.json`, 'utf8'))
