/** The data directory that version 0.1 has written, and what is in it: test/fixtures/make-data.ts. */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

interface OldDataFacts {
  /** Wall time at which it was made, far in the future. */
  readonly madeAtMs: number
  readonly tokens: {
    readonly polling: string
    readonly paused: string
    readonly refused: string
    readonly removed: string
    /** The one that is running out, and its successor. */
    readonly idle: readonly [string, string]
  }
  /** Of the bot that polls: ids below it were confirmed. */
  readonly firstPendingId: number
  /** The only update of the bot that was removed. */
  readonly removedId: number
  readonly keyedIds: Readonly<Record<'key-0' | 'key-1', number>>
  readonly webhookUrl: string
}

export const oldData = fileURLToPath(new URL('../../../test/fixtures/data-0.1', import.meta.url))
export const oldDataFacts: OldDataFacts = JSON.parse(readFileSync(`${oldData}.json`, 'utf8'))
