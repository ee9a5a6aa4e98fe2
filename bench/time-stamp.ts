/**
 * The moment of its push inside an update, from which the sink tells how long it was on its way. It takes the place of
 * the first characters of the message's text, so that the update stays as long as it was:
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

/** Where in an update's bytes a stamp goes. */
export function stampPlace(update: Buffer): number {
  const at = update.indexOf(textStart)
  if (at < 0) throw new Error('expected an update with a text')
  return at + textStart.length
}

export function writeStamp(update: Buffer, place: number, us: number): void {
  update.write(mark + String(us).padStart(digits, '0'), place, 'latin1')
}

/** Of the first update at or after a place; undefined where none has a stamp. */
export function readStamp(bytes: Buffer, from = 0): number | undefined {
  const at = bytes.indexOf(markedStart, from)
  if (at < 0) return undefined
  const first = at + markedStart.length
  return Number(bytes.toString('latin1', first, first + digits))
}

/** Of all updates. */
export function readStamps(bytes: Buffer): number[] {
  const stamps: number[] = []
  for (let at = bytes.indexOf(markedStart); at >= 0; at = bytes.indexOf(markedStart, at + 1)) {
    stamps.push(readStamp(bytes, at) ?? Number.NaN)
  }
  return stamps
}
