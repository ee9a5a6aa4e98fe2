/** The data directories and exports that earlier versions have written, and their contents; test/fixtures/make-data.ts creates them. */
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

export interface OldData {
  readonly directory: string
  /** An export of it. Version 0.1 had none. */
  readonly exported: string
  readonly facts: OldDataFacts
}

/** @param version That of the name of the fixture. */
export function oldDataOf(version: '0.1' | '1.0'): OldData {
  const name = `../../../../test/fixtures/data-${version}`
  const directory = fileURLToPath(new URL(name, import.meta.url))
  const facts: OldDataFacts = JSON.parse(readFileSync(`${directory}.json`, 'utf8'))
  return { directory, exported: `${directory}.export`, facts }
}
