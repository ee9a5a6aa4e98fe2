/** What runs the relays of a run, and how it is killed. */
import type { Server } from '../support/server/server.ts'

/** Where a sync is held: nothing of it has happened, or all of it and nobody knows. */
export type SyncEdge = 'begins' | 'ended'

export interface RelayTarget {
  /** What can be killed. */
  readonly victims: readonly string[]
  /** A server that clients use now. */
  server(): Server
  /** All that run. */
  servers(): readonly Server[]
  /** Resolves when the sync of the updates with this text is held. */
  holdSync(edge: SyncEdge, text: string): Promise<void>
  /** What is not held goes on. */
  letPass(): void
  /** Kills what relays this bot, by SIGKILL, or freezes it. Resolves when it does nothing more. */
  kill(victim: string, botId: number): Promise<void>
  /** Resolves when everything runs again and has its work. */
  restore(): Promise<void>
}
