/**
 * Checks many updates that lie in one piece of memory and derives their ordering keys: what a Piscina thread does
 * for large updates and NDJSON chunks, in a form that crosses threads cheaply. The bytes are handed over and back;
 * offsets and types are typed arrays; only keys and refusals are objects.
 */

import { errorKinds, PostboteError } from '../errors.ts'
import { checkUpdate } from './check-update.ts'
import { deriveOrderingKey } from './ordering-key.ts'

export interface UpdateBatch {
  readonly bytes: Uint8Array
  /** Where update N begins in the bytes, and the byte after it. */
  readonly starts: Int32Array
  readonly ends: Int32Array
}

/** Entry N of each list belongs to update N. */
export interface CheckedBatch {
  readonly bytes: Uint8Array
  /** -1 for a refused update. */
  readonly typeNumbers: Int8Array
  /** Where the text of the update begins in the bytes, and the byte after it. */
  readonly textStarts: Int32Array
  readonly textEnds: Int32Array
  /** Derived keys; '' for a refused update. */
  readonly orderingKeys: readonly string[]
  /** Why update N was refused: the detail of its BAD_UPDATE. */
  readonly refusals: ReadonlyMap<number, string>
}

export function checkBatch(batch: UpdateBatch): CheckedBatch {
  const { bytes, starts, ends } = batch
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const count = starts.length
  const typeNumbers = new Int8Array(count).fill(-1)
  const textStarts = new Int32Array(count)
  const textEnds = new Int32Array(count)
  const orderingKeys: string[] = []
  const refusals = new Map<number, string>()
  for (let nth = 0; nth < count; nth++) {
    try {
      const { typeNumber, text } = checkUpdate(buffer.subarray(starts[nth], ends[nth]))
      typeNumbers[nth] = typeNumber
      textStarts[nth] = text.byteOffset - buffer.byteOffset
      textEnds[nth] = text.byteOffset - buffer.byteOffset + text.length
      orderingKeys.push(deriveOrderingKey(typeNumber, text))
    } catch (error) {
      refusals.set(nth, detailOf(error))
      orderingKeys.push('')
    }
  }
  return { bytes, typeNumbers, textStarts, textEnds, orderingKeys, refusals }
}

const prefixLength = errorKinds.BAD_UPDATE.description.indexOf('%s')

/** Errors lose their class and code on the way between threads. A bug stays one. */
function detailOf(error: unknown): string {
  if (error instanceof PostboteError && error.code === 'BAD_UPDATE') {
    return error.message.slice(prefixLength)
  }
  throw error
}
