/**
 * What JavaScript says of an update: the reference that the native check is compared with. Whether it is valid, the search for
 * the words of a refusal tells; the text is what is between the outer braces.
 */
import { deriveOrderingKey } from '../../../src/queue/check/ordering-key.ts'
import { updateTypeNumber } from '../../../src/kit/update-types.ts'
import { whyRefused } from '../../../src/queue/check/why-refused.ts'

/** As `verdictOf` of pushed-rows.ts returns it: the texts have a character for each byte. */
export interface PlainVerdict {
  readonly typeNumber: number
  readonly text: string
  readonly derivedKey: string
}

const partsOf = /^\s*\{\s*("([^"]*)"[^]*\})\s*\}\s*$/

/** Returns the verdict about an update, or the message of its refusal. */
export function plainVerdict(update: Buffer): PlainVerdict | string {
  const reason = whyRefused(update)
  if (reason !== undefined) return `Bad update: ${reason}`
  const [, text = '', type = ''] = partsOf.exec(update.toString('latin1')) ?? []
  const typeNumber = updateTypeNumber.get(type) ?? -1
  return {
    typeNumber,
    text,
    derivedKey: deriveOrderingKey(typeNumber, Buffer.from(text, 'latin1')),
  }
}
