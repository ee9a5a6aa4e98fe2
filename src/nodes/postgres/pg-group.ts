/**
 * Sorts the operations of one group into what its statement takes: by table, with one operation for each key, and with
 * runs of deleted ids as ranges.
 */
import type { StoreOperation } from '../../store/store.ts'

/** The tables of a shard, by the first byte of their keys: updates, ids and counts, everything else. */
export type TableKind = 'u' | 's' | 'r'

export interface GroupPuts {
  readonly keys: Buffer[]
  readonly values: Buffer[]
}

export interface PgGroup {
  readonly puts: Readonly<Record<TableKind, GroupPuts>>
  /** Deletes the updates from `from[i]` up to, but not including, `to[i]`. */
  readonly updateRuns: { readonly from: Buffer[]; readonly to: Buffer[] }
  readonly dels: { readonly s: Buffer[]; readonly r: Buffer[] }
}

const updatePrefix = 0x75
const statePrefix = 0x73
const updateKeyBytes = 17
const idOffset = 13
const zero = Buffer.from([0])

/** Returns the table of a key. */
export function tableOf(key: Buffer): TableKind {
  if (key[0] === updatePrefix) return 'u'
  return key[0] === statePrefix ? 's' : 'r'
}

/**
 * Folds and sorts the operations of a group.
 *
 * @throws Error if a key is empty
 */
export function pgGroup(operations: readonly StoreOperation[]): PgGroup {
  const group: PgGroup = {
    puts: { u: noPuts(), s: noPuts(), r: noPuts() },
    updateRuns: { from: [], to: [] },
    dels: { s: [], r: [] },
  }
  const deletedUpdates: Buffer[] = []
  for (const operation of lastOfEachKey(operations)) {
    const { key } = operation
    const table = tableOf(key)
    if (operation.type === 'put') {
      group.puts[table].keys.push(key)
      group.puts[table].values.push(operation.value)
    } else if (table === 'u') {
      deletedUpdates.push(key)
    } else {
      group.dels[table].push(key)
    }
  }
  addRuns(group, deletedUpdates)
  return group
}

function noPuts(): GroupPuts {
  return { keys: [], values: [] }
}

/** All parts of a statement see the same rows, in no order: a key may occur in one of them only. */
function lastOfEachKey(operations: readonly StoreOperation[]): Iterable<StoreOperation> {
  const last = new Map<string, StoreOperation>()
  for (const operation of operations) {
    if (operation.key.length === 0) throw new Error('expected a key of at least one byte')
    last.set(operation.key.toString('latin1'), operation)
  }
  return last.values()
}

/** A confirm deletes consecutive ids, and one range of them costs as much as one key. */
function addRuns({ updateRuns: { from, to } }: PgGroup, deleted: Buffer[]): void {
  deleted.sort((a, b) => Buffer.compare(a, b))
  let last: Buffer | undefined
  for (const key of deleted) {
    const isNext = last !== undefined && isNextId(last, key)
    if (!isNext) from.push(key)
    const end = endOfRun(key)
    if (isNext) to[to.length - 1] = end
    else to.push(end)
    last = key
  }
}

function isNextId(before: Buffer, key: Buffer): boolean {
  if (key.length !== updateKeyBytes || before.length !== updateKeyBytes) return false
  if (before.compare(key, 0, idOffset, 0, idOffset) !== 0) return false
  return key.readUInt32BE(idOffset) === before.readUInt32BE(idOffset) + 1
}

/** The first possible key after `key`. */
function endOfRun(key: Buffer): Buffer {
  return Buffer.concat([key, zero])
}
