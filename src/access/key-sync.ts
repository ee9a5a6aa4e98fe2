/**
 * Keeps the keys of a worker (access/access-key-ring.ts) as the owner of shard 0 has them.
 *
 *   a worker starts   --> asks the owner, again and again until it has an answer
 *   a key changes     --> the owner stores it, then tells all workers; each asks the owner, and the change returns after that
 *   every 5 s         --> each worker asks the owner, for what it was not told, and reports which keys were used
 *
 * A worker that cannot ask goes on with the keys that it knows: all keys would otherwise depend on shard 0.
 */
import { type Clock, sleep, type Timer } from '../kit/clock.ts'
import type { AccessKeyRegistry } from './access-key-registry.ts'
import type { AccessKeyRing, KeyUses } from './access-key-ring.ts'
import type { AccessKeyTable } from './access-key-table.ts'
import { PostboteError } from '../kit/errors.ts'
import { Mutex } from '../kit/mutex.ts'
import { ask } from '../links/ask/ask-workers.ts'
import type { OwnerStream } from '../links/ask/owner-stream.ts'
import { type AnswerOf, asks, type InputOf, type Question } from '../links/ask/question.ts'
import type { RecordedCall } from '../shard/records/audit-record.ts'

/** The version of the keys that a worker has, and the uses that it has noticed. */
export interface KeyQuestion {
  readonly version: string
  readonly uses: KeyUses
}

/** Questions for the owner of shard 0. */
export const keysOwnerQuestions = {
  /** Which keys are there? It answers without keys if the worker has its version. */
  keys: asks<KeyQuestion, AccessKeyTable | Pick<AccessKeyTable, 'version'>>('keys'),
  /** Stores recorded calls. A call that is stored again is there once. */
  recordCalls: asks<readonly RecordedCall[], Readonly<Record<string, never>>>('record-calls'),
}

export interface KeySyncOptions {
  readonly clock: Clock
  readonly ring: AccessKeyRing
  readonly registry: Pick<AccessKeyRegistry, 'table' | 'noteUses'>
  /** Whether this worker has shard 0. */
  readonly isOwner: () => boolean
  /** Opens a request to the worker that has shard 0. */
  readonly openStream: (path: string) => OwnerStream
}

/**
 * A worker asks for changes of the keys this often. It is also told of each change at once, so this bounds how long a worker
 * that could not be reached goes on with old keys.
 */
export const keyRefreshMs = 5_000
/** A worker that does not know the keys yet asks this often: it has just started, and so may have the owner of the keys. */
export const keyFirstRefreshMs = 200
/** An answer with the keys is waited for this long, as other questions between workers are (`workersAnswerMs`). */
export const keyAnswerMs = 5_000

export class KeySync {
  readonly #options: KeySyncOptions
  readonly #turns = new Mutex()
  /** A refresh that has not begun yet, so it will see every change so far. */
  #next: Promise<boolean> | undefined
  #timer: Timer | undefined
  #isClosed = false

  constructor(options: KeySyncOptions) {
    this.#options = options
  }

  /** Asks now, and from then on regularly. Resolves when the first question was answered, or has failed. */
  async start(): Promise<void> {
    await this.refresh()
    this.#goOn()
  }

  close(): void {
    this.#isClosed = true
    this.#timer?.cancel()
  }

  /**
   * Gets all changes that were stored before this call.
   *
   * @returns whether the owner has answered
   */
  refresh(): Promise<boolean> {
    this.#next ??= this.#turns.run(() => {
      this.#next = undefined
      return this.#refresh()
    })
    return this.#next
  }

  #goOn(): void {
    if (this.#isClosed) return
    const { clock, ring } = this.#options
    this.#timer = clock.after(ring.isKnown ? keyRefreshMs : keyFirstRefreshMs, () => {
      void this.refresh().then(() => this.#goOn())
    })
  }

  async #refresh(): Promise<boolean> {
    const { ring } = this.#options
    const uses = ring.uses()
    try {
      const table = await this.#ask({ version: ring.version, uses })
      ring.reported(uses)
      if (table !== undefined) ring.set(table)
      return true
    } catch (error) {
      if (!(error instanceof PostboteError)) throw error
      return false
    } finally {
      ring.endExpired()
    }
  }

  /** Returns undefined if nothing has changed. */
  async #ask(question: KeyQuestion): Promise<AccessKeyTable | undefined> {
    const { registry, isOwner } = this.#options
    if (isOwner()) {
      const table = await registry.table()
      registry.noteUses(question.uses)
      return table
    }
    const answer = await askKeysOwner(this.#options, keysOwnerQuestions.keys, question)
    return 'keys' in answer ? answer : undefined
  }
}

/**
 * Asks the owner of shard 0, and does not wait for one that hangs.
 *
 * @throws what `ask` throws; STORE_UNAVAILABLE without an answer in time
 */
export async function askKeysOwner<Row extends Question<never, unknown>>(
  { clock, openStream: open }: Pick<KeySyncOptions, 'clock' | 'openStream'>,
  question: Row,
  input: InputOf<Row>,
): Promise<AnswerOf<Row>> {
  const over = new AbortController()
  const { signal } = over
  try {
    const answer = await Promise.race([
      ask({ open, signal }, question, input),
      sleep(clock, keyAnswerMs, signal).then(() => undefined),
    ])
    if (answer === undefined) throw new PostboteError('STORE_UNAVAILABLE')
    return answer
  } finally {
    over.abort()
  }
}
