/**
 * What a worker keeps in memory of every bot of one shard, so that questions about all bots read nothing from disk: the
 * name, the number of pending updates and the time of the oldest, the host of the webhook, and the number of dead letters.
 *
 *   filling --filled--> filled        `fill` adds what is stored; `committed` applies every group from the beginning
 *
 * The index takes values and not differences: the counts of a queue are those of its `s` record after the group. A page
 * that was read before a commit and is applied after it would be outdated, so `fill` skips what a commit has changed since
 * the filling began.
 *
 * The oldest update of a queue is known while the queue fills up and drains completely. If others remain after the oldest
 * one has left, the time of the next one is *due*: a reader asks `takeDueOldest`, finds the update and calls `oldestIs`.
 * Dead letters are due in the same way after each change, because no record counts them. A due value stays at its last
 * state until it is read.
 *
 * fleet-rows.ts has the rows: those of 100,000 bots take 15 MB in all workers together.
 */
import assert from 'node:assert/strict'
import { hostOfWebhook } from '../../http/webhook-url.ts'
import { unreachable } from '../../kit/errors.ts'
import type { BotRecord, QueueSettings } from '../../shard/records/bot-record.ts'
import type { QueueId } from '../../shard/records/record-keys.ts'
import {
  type ForgetKeptOperation,
  isJson,
  type JsonOperation,
  type Operation,
  type OperationOf,
  type QueueOperation,
} from '../../shard/operations.ts'
import type { QueueState } from '../../shard/records/record.ts'
import type { DeadLetterId, ListedKind, StoredRecord } from '../../shard/records/stored-records.ts'
import { FleetRows, type Row } from './fleet-rows.ts'

/** What is known of one queue, until the next change of the index. Only the last poll may be noted here: no record has it. */
export type FleetRow = Readonly<
  Pick<
    Row,
    | 'queue'
    | 'isRegistered'
    | 'username'
    | 'hasName'
    | 'hasNamePrefix'
    | 'hasWordPrefix'
    | 'hasHostPrefix'
    | 'webhookHost'
    | 'pendingCount'
    | 'pendingBytes'
    | 'oldestAtS'
    | 'deadLetters'
    | 'hasWebhook'
    | 'isPaused'
  >
> &
  Pick<Row, 'polledAtS'>

/** The oldest pending update of a queue. */
export interface OldestUpdate {
  readonly updateId: number
  readonly acceptedAtS: number
}

/** A queue whose oldest pending update is due, and the id from which on it is found. */
export interface DueOldest {
  readonly queue: QueueId
  readonly floor: number
}

/** An operation on a bot or a queue that changes no ids and counts. */
type RecordOperation = Exclude<Operation, QueueOperation | SilentOperation>

/** An operation that changes nothing of what the index shows. */
type SilentOperation = ForgetKeptOperation | Exclude<JsonOperation, OperationOf<'bot' | 'settings'>>

const recordKinds: ReadonlySet<Operation['kind']> = new Set<RecordOperation['kind']>([
  'bot',
  'settings',
  'addDeadLetters',
  'removeDeadLetters',
])

function tellsNothing(operation: Operation): operation is SilentOperation {
  return operation.kind === 'forgetKept' || (isJson(operation) && !recordKinds.has(operation.kind))
}

function isOfQueue(operation: QueueOperation | RecordOperation): operation is QueueOperation {
  return !recordKinds.has(operation.kind)
}

/** What one group does to the updates of a queue. */
interface Change {
  firstPush: OldestUpdate | undefined
  isOldestGone: boolean
}

/** The rows of one shard. Pure: it neither reads the shard nor knows the time. */
export class FleetIndex {
  readonly #rows = new FleetRows()
  /** The number of rows whose oldest update is due. */
  #dueOldest = 0
  /** The place at which the search for them goes on, so that each of them gets its turn. */
  #duePlace = 0
  readonly #dueDeadLetters = new Set<QueueId>()
  /** What was changed since the filling began; undefined once the index is filled. */
  #touched: Readonly<Record<ListedKind, Set<QueueId>>> | undefined = {
    b: new Set(),
    w: new Set(),
    s: new Set(),
  }

  /** Whether every queue of the shard has its row. */
  get isFilled(): boolean {
    return this.#touched === undefined
  }

  /** The rows of all queues that have something to tell. */
  get rows(): Iterable<FleetRow> {
    return this.#rows
  }

  /** The number of places for rows, most of which have one. */
  get size(): number {
    return this.#rows.places
  }

  /** Returns the row of a queue; undefined if it has none. */
  row(queue: QueueId): FleetRow | undefined {
    return this.#rows.find(queue)
  }

  /**
   * Applies a committed group.
   *
   * @param operations - the group.
   * @param stateOf - returns the ids and counts of a queue after the group.
   */
  committed(
    operations: readonly Operation[],
    stateOf: (queue: QueueId) => Readonly<QueueState> | undefined,
  ): void {
    const changes = new Map<QueueId, Change>()
    for (const operation of operations) {
      if (tellsNothing(operation)) continue
      if (isOfQueue(operation)) this.#note(changes, operation)
      else this.#takeRecord(operation)
    }
    for (const [queue, change] of changes) {
      const state = stateOf(queue)
      if (state !== undefined) this.#change(queue, state, change)
    }
  }

  /** Adds stored records, except those that a commit has changed since the filling began. */
  fill(kind: ListedKind, records: readonly StoredRecord<ListedKind>[]): void {
    for (const { queue, record } of records) {
      if (this.#touched?.[kind].has(queue) !== false) continue
      if ('liveCount' in record) this.#setState(queue, record)
      else if ('username' in record) this.#setBot(queue, record)
      else this.#setSettings(queue, record)
    }
  }

  /** Adds stored dead letters. Those of a queue that a commit has changed are counted again, because they are due. */
  fillDeadLetters(deadLetters: readonly DeadLetterId[]): void {
    for (const { queue } of deadLetters) this.#rows.of(queue).deadLetters += 1
  }

  /** Everything that is stored was added. */
  filled(): void {
    assert(this.#touched !== undefined, 'an index is filled once')
    this.#touched = undefined
  }

  /** Returns up to `limit` queues whose oldest update is due. The caller reads each of them and calls `oldestIs`. */
  takeDueOldest(limit: number): readonly DueOldest[] {
    const due: DueOldest[] = []
    const { places } = this.#rows
    for (let left = places; left > 0 && this.#dueOldest > 0 && due.length < limit; left--) {
      if (this.#duePlace >= places) this.#duePlace = 0
      const row = this.#rows.at(this.#duePlace++)
      if (row?.isOldestDue !== true) continue
      this.#setDue(row, false)
      due.push({ queue: row.queue, floor: row.floor })
    }
    return due
  }

  /** The oldest update of a queue was read. It is ignored if a commit has told more since. */
  oldestIs(queue: QueueId, oldest: OldestUpdate | undefined): void {
    const row = this.#rows.find(queue)
    if (row === undefined || row.pendingCount === 0 || row.oldestId !== undefined) return
    // If it is due again, another update may have been the oldest by now.
    if (oldest !== undefined && !row.isOldestDue) row.oldestId = oldest.updateId
    row.oldestAtS = oldest?.acceptedAtS
  }

  /** A queue that `takeDueOldest` returned could not be read, so it stays due. */
  oldestUnread(queue: QueueId): void {
    const row = this.#rows.find(queue)
    if (row !== undefined && row.pendingCount > 0) this.#setDue(row, true)
  }

  /** Returns the queues whose dead letters are due. The caller counts each of them and calls `deadLettersAre`. */
  takeDueDeadLetters(limit: number): readonly QueueId[] {
    const due = [...this.#dueDeadLetters].slice(0, limit)
    for (const queue of due) this.#dueDeadLetters.delete(queue)
    return due
  }

  /** The dead letters of a queue were counted. */
  deadLettersAre(queue: QueueId, count: number): void {
    const row = this.#rows.of(queue)
    row.deadLetters = count
    this.#tidy(row)
  }

  /** A queue that `takeDueDeadLetters` returned could not be counted, so it stays due. */
  deadLettersUncounted(queue: QueueId): void {
    this.#dueDeadLetters.add(queue)
  }

  #takeRecord(operation: RecordOperation): void {
    const { kind, queue } = operation
    switch (kind) {
      case 'bot':
        this.#touched?.b.add(queue)
        this.#setBot(queue, operation.record)
        break
      case 'settings':
        this.#touched?.w.add(queue)
        this.#setSettings(queue, operation.record)
        break
      case 'addDeadLetters':
      case 'removeDeadLetters':
        this.#dueDeadLetters.add(queue)
        break
      default:
        unreachable(kind)
    }
  }

  #setBot(queue: QueueId, record: BotRecord | null): void {
    const row = this.#rows.of(queue)
    row.username = record?.username
    row.firstName = record?.firstName
    this.#tidy(row)
  }

  #setSettings(queue: QueueId, record: QueueSettings | null): void {
    const row = this.#rows.of(queue)
    row.webhookHost = record?.webhook && hostOfWebhook(record.webhook.url)
    row.isPaused = record?.isPaused === true
    this.#tidy(row)
  }

  #setState(queue: QueueId, { liveCount, liveBytes, floor }: Readonly<QueueState>): void {
    if (liveCount === 0 && this.#rows.find(queue) === undefined) return
    const row = this.#rows.of(queue)
    row.pendingCount = liveCount
    row.pendingBytes = liveBytes
    row.floor = floor
    this.#makeDue(row)
    this.#tidy(row)
  }

  #note(changes: Map<QueueId, Change>, operation: QueueOperation): void {
    const { queue } = operation
    let change = changes.get(queue)
    if (change === undefined) {
      change = { firstPush: undefined, isOldestGone: false }
      changes.set(queue, change)
    }
    if (operation.kind === 'push') {
      change.firstPush ??= operation
    } else if (operation.kind !== 'renumber') {
      // Every floor is above an unknown id.
      const oldestId = this.#rows.find(queue)?.oldestId ?? -1
      const isSingle = operation.kind === 'delete' && operation.updateIds.includes(oldestId)
      change.isOldestGone ||= operation.floor > oldestId || isSingle
    }
  }

  #change(queue: QueueId, state: Readonly<QueueState>, { firstPush, isOldestGone }: Change): void {
    const touched = this.#touched?.s
    const isKnown = touched === undefined || touched.has(queue)
    touched?.add(queue)
    const row = this.#rows.of(queue)
    const wasEmpty = isKnown && row.pendingCount === 0
    row.pendingCount = state.liveCount
    row.pendingBytes = state.liveBytes
    row.floor = state.floor
    if (wasEmpty && firstPush !== undefined && !isOldestGone) {
      // Everything that is pending was pushed by this group.
      row.oldestId = firstPush.updateId
      row.oldestAtS = firstPush.acceptedAtS
    } else if (isOldestGone || !isKnown) {
      this.#makeDue(row)
    }
    this.#tidy(row)
  }

  #makeDue(row: Row): void {
    row.oldestId = undefined
    if (row.pendingCount === 0) row.oldestAtS = undefined
    this.#setDue(row, row.pendingCount > 0)
  }

  #setDue(row: Row, isDue: boolean): void {
    if (row.isOldestDue === isDue) return
    row.isOldestDue = isDue
    this.#dueOldest += isDue ? 1 : -1
  }

  #tidy(row: Row): void {
    if (!row.isEmpty) return
    this.#setDue(row, false)
    this.#rows.remove(row.queue)
  }
}
