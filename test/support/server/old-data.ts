/** The data directory and the export that version 1.0 has written, and their contents; test/fixtures/make-data.ts creates them. */
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

interface OldData {
  readonly directory: string
  /** An export of it. */
  readonly exported: string
  readonly facts: OldDataFacts
}

export function oldData(): OldData {
  const directory = fileURLToPath(new URL('../../../../test/fixtures/data-1.0', import.meta.url))
  const facts: OldDataFacts = JSON.parse(readFileSync(`${directory}.json`, 'utf8'))
  return { directory, exported: `${directory}.export`, facts }
}
