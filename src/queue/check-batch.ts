/**
 * Checks a batch of updates and derives their ordering keys. A Piscina thread does this for large updates, so the form
 * crosses threads cheaply: the bytes are shared and stay in place, offsets and types are typed arrays, and only keys and
 * refusals are objects.
 */

import { errorKinds, PostboteError } from '../errors.ts'
import { type CheckedUpdate, checkUpdate } from './check-update.ts'
import { deriveOrderingKey } from './ordering-key.ts'

/** The updates of a batch as ranges of one shared memory. */
export interface UpdateBatch {
  readonly memory: SharedArrayBuffer
  /** The positions of update N in the memory: its first byte and the byte after its last. */
  readonly starts: Int32Array
  readonly ends: Int32Array
}

/** The results of a batch. Entry N of each list belongs to update N. */
export interface CheckedBatch {
  /** The index of the type in `updateTypes`; -1 for a refused update. */
  readonly typeNumbers: Int8Array
  /** The range of the text, relative to the start of the update: its first byte and the byte after its last. */
  readonly textStarts: Int32Array
  readonly textEnds: Int32Array
  /** The derived keys; '' for a refused update. */
  readonly orderingKeys: readonly string[]
  /** Why update N was refused: the detail of its BAD_UPDATE. */
  readonly refusals: ReadonlyMap<number, string>
}

/**
 * Checks all updates of a batch. Runs in the thread.
 *
 * @throws any error other than BAD_UPDATE, because it is a bug.
 */
export function checkBatch({ memory, starts, ends }: UpdateBatch): CheckedBatch {
  const buffer = Buffer.from(memory)
  const count = starts.length
  const typeNumbers = new Int8Array(count).fill(-1)
  const textStarts = new Int32Array(count)
  const textEnds = new Int32Array(count)
  const orderingKeys: string[] = []
  const refusals = new Map<number, string>()
  for (let nth = 0; nth < count; nth++) {
    try {
      const update = buffer.subarray(starts[nth], ends[nth])
      const { typeNumber, text } = checkUpdate(update)
      typeNumbers[nth] = typeNumber
      textStarts[nth] = text.byteOffset - update.byteOffset
      textEnds[nth] = text.byteOffset - update.byteOffset + text.length
      orderingKeys.push(deriveOrderingKey(typeNumber, text))
    } catch (error) {
      refusals.set(nth, detailOf(error))
      orderingKeys.push('')
    }
  }
  return { typeNumbers, textStarts, textEnds, orderingKeys, refusals }
}

/**
 * Converts one result of a batch back, in the thread that owns the update.
 *
 * @param checked - the results of the batch
 * @param nth - the index of the update in the batch
 * @param update - the bytes of that update
 * @returns the checked update with its derived key, or BAD_UPDATE as a value
 */
export function checkedUpdateOf(
  checked: CheckedBatch,
  nth: number,
  update: Buffer,
): CheckedUpdate | PostboteError {
  const detail = checked.refusals.get(nth)
  if (detail !== undefined) return new PostboteError('BAD_UPDATE', { detail })
  return {
    typeNumber: checked.typeNumbers[nth] ?? -1,
    text: update.subarray(checked.textStarts[nth], checked.textEnds[nth]),
    derivedKey: checked.orderingKeys[nth],
  }
}

const prefixLength = errorKinds.BAD_UPDATE.description.indexOf('%s')

/** Returns the detail alone, because errors lose their class and code between threads. Rethrows a bug. */
function detailOf(error: unknown): string {
  if (error instanceof PostboteError && error.code === 'BAD_UPDATE') {
    return error.message.slice(prefixLength)
  }
  throw error
}
