/**
 * The time of the push within an update, from which the sink computes the delay. It replaces the first characters of the
 * message's text, so that the length of the update stays the same:
 *
 *     "text":"@0000012345678901..."
 *
 * The monotonic clock is the same in all processes of a machine.
 */

const textStart = Buffer.from('"text":"')
const mark = '@'
const digits = 16
const markedStart = Buffer.from(`"text":"${mark}`)

export function monotonicUs(): number {
  return Number(process.hrtime.bigint() / 1_000n)
}

/** Returns where a stamp goes in the bytes of an update. */
export function stampPlace(update: Buffer): number {
  const at = update.indexOf(textStart)
  if (at < 0) throw new Error('expected an update with a text')
  return at + textStart.length
}

export function writeStamp(update: Buffer, place: number, us: number): void {
  update.write(mark + String(us).padStart(digits, '0'), place, 'latin1')
}

/** Returns the stamp of the first update at or after a position; undefined if there is none. */
export function readStamp(bytes: Buffer, from = 0): number | undefined {
  const at = bytes.indexOf(markedStart, from)
  if (at < 0) return undefined
  const first = at + markedStart.length
  return Number(bytes.toString('latin1', first, first + digits))
}

/** Returns the stamps of all updates. */
export function readStamps(bytes: Buffer): number[] {
  const stamps: number[] = []
  for (let at = bytes.indexOf(markedStart); at >= 0; at = bytes.indexOf(markedStart, at + 1)) {
    stamps.push(readStamp(bytes, at) ?? Number.NaN)
  }
  return stamps
}

/** Returns the text of a message with a stamp in place of its first characters. */
export function stampText(text: string, us: number): string {
  return mark + String(us).padStart(digits, '0') + text.slice(mark.length + digits)
}

/** Returns the stamp of the text of a message; undefined if it has none. */
export function stampOf(text: string): number | undefined {
  return text.startsWith(mark) ? Number(text.slice(mark.length, mark.length + digits)) : undefined
}
