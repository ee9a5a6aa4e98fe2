/**
 * The port to what stores shards. Each implementation of `Store` has one in its folder, and `engineOf` in engine-of.ts
 * chooses the one in use. What differs between stores is asked here, and nowhere which store it is.
 */
import type { Clock } from '../kit/clock.ts'
import type { Store } from './store.ts'
import type { StoreFiles, VerifyThread } from './store-files.ts'
import type { Log } from '../kit/surroundings.ts'

export interface StoreEngine {
  /**
   * Opens the store of a shard, as its only user.
   *
   * @throws ShardDamaged or another error that `files.damageOf` recognizes if the shard is damaged.
   */
  open(options: OpenStoreOptions): Promise<OpenedStore>
  /** Undefined if no files of this machine hold the shards. */
  readonly files?: StoreFiles
  /** Undefined if no other node can have the shards. */
  readonly shared?: SharedStore
  /** What the log says about a shard that is set aside: what is wrong with it, and what to do. */
  readonly asideText: string
  /** Watches the room for records; undefined if nothing limits it. Rejects if it cannot be watched. */
  space(clock: Clock, dataDir: string, reserveBytes: number): Promise<StoreSpace | undefined>
}

/** Databases that hold the shards of several nodes, each with leases and a clock of its own. */
export interface SharedStore {
  /** The name of this node. */
  readonly node: string
  /** The number of databases. */
  readonly databases: number
  /**
   * The database with this number responds at this life of one of its servers: connections to earlier ones are ended,
   * because a server that is frozen or cut off would not say that it is the primary no more.
   */
  databaseIsAt(database: number, server: string): void
}

/** Watches the room for records: pushes are refused while it is low. */
export interface StoreSpace {
  /** Whether pushes for the bots of this shard are refused. */
  isLow(shard: number): boolean
  /** Whether it is likely that they soon are, so that what can be spared should go. */
  isNearlyLow(shard: number): boolean
  /** Of the disk, in bytes; undefined if a database has the updates. */
  readonly freeBytes?: number | undefined
  close(): void
}

export interface OpenStoreOptions {
  /** Index of the shard. */
  readonly shard: number
  /** The directory of the shard. */
  readonly directory: string
  /** The life of the node that opens it, by which a shared store knows the owner of a shard. */
  readonly boot?: string | undefined
  readonly clock: Clock
  readonly log: StoreLog
  /** Called when the open store can be used no more until it is closed and opened again. */
  readonly onEnded?: ((error: Error) => void) | undefined
  /** Returns what is wrong with a key that the shard cannot have; then it is damaged. Files are asked, a database is not. */
  readonly keyFault?: ((key: Buffer) => string | undefined) | undefined
  /** Verifies files before they are opened. Without one, that is done in place. */
  readonly verifyThread?: VerifyThread | undefined
  /** The shard may have ended a process, so its files are verified whenever that was done last. */
  readonly isDoubted?: boolean | undefined
  /** Called before an end of a file is cut off that no sync seems to have reached. Waited for. */
  readonly onTornEnd?: (() => Promise<void> | undefined) | undefined
}

export type StoreLog = Pick<Log, 'error' | 'warn' | 'info'>

export interface OpenedStore {
  readonly store: Store
  /** Whether records were lost: ids and counts in the others may be wrong. */
  readonly hasLost: boolean
  /** Whether files were too large to verify all of them first. */
  readonly isUnverified?: boolean | undefined
  /** Call this when the ids and counts are right again. Until then, every opening says `hasLost`. */
  accept(): Promise<void>
  /** Returns whether the store can be written. Used after a failed write, before it is opened again. */
  probe(): Promise<boolean>
}

/** Another process owns the shard: it cannot be opened here. */
export class NotOwnerError extends Error {
  constructor(shard: number, owner: string) {
    super(`shard ${shard} belongs to ${owner}`)
    this.name = 'NotOwnerError'
  }
}
