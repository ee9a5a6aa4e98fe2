/**
 * Checks updates and derives their ordering keys: what a Piscina thread does for large ones, in a form that crosses
 * threads cheaply. The bytes are shared and stay where they are; offsets and types are typed arrays; only keys and
 * refusals are objects.
 */

import { errorKinds, PostboteError } from '../errors.ts'
import { type CheckedUpdate, checkUpdate } from './check-update.ts'
import { deriveOrderingKey } from './ordering-key.ts'

export interface UpdateBatch {
  readonly memory: SharedArrayBuffer
  /** Where update N begins in the memory, and the byte after it. */
  readonly starts: Int32Array
  readonly ends: Int32Array
}

/** Entry N of each list belongs to update N. */
export interface CheckedBatch {
  /** -1 for a refused update. */
  readonly typeNumbers: Int8Array
  /** Where the text of the update begins, counted from the update's own beginning, and the byte after it. */
  readonly textStarts: Int32Array
  readonly textEnds: Int32Array
  /** Derived keys; '' for a refused update. */
  readonly orderingKeys: readonly string[]
  /** Why update N was refused: the detail of its BAD_UPDATE. */
  readonly refusals: ReadonlyMap<number, string>
}

/** In the thread. */
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

/** Back from the thread: what it found out about update N, whose bytes are at hand here. */
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

/** Errors lose their class and code on the way between threads. A bug stays one. */
function detailOf(error: unknown): string {
  if (error instanceof PostboteError && error.code === 'BAD_UPDATE') {
    return error.message.slice(prefixLength)
  }
  throw error
}
