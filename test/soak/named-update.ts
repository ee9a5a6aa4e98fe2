/** Updates whose bytes all follow from their name, so that a receiver can check that an update is complete. */
import { createHash } from 'node:crypto'

/** A field of the message; the producer sets the ordering key of a webhook itself. */
export interface NamedUpdate {
  readonly message: {
    readonly text: string
    readonly key: string
    readonly padding: string
  }
}

/** `LANE.NUMBER.BYTES`: the lane that pushed it, its number within the lane, and the size of its padding. */
export function updateName(lane: string, number: number, paddingBytes: number): string {
  return `${lane}.${number}.${paddingBytes}`
}

export function namedUpdate(name: string, orderingKey: string): NamedUpdate {
  const bytes = Number(name.split('.')[2] ?? 0)
  // The padding does not compress: bytes on disk make LevelDB change its files.
  const noise = createHash('shake256', { outputLength: Math.ceil((bytes * 3) / 4) })
  const padding = bytes === 0 ? '' : noise.update(name).digest('base64').slice(0, bytes)
  return { message: { text: name, key: orderingKey, padding } }
}

/** Returns the name and key of a received update; the name is empty if the update differs in any way. */
export function nameOf(update: Partial<NamedUpdate>): { name: string; orderingKey: string } {
  const name = String(update.message?.text)
  const orderingKey = String(update.message?.key)
  const expected = JSON.stringify(namedUpdate(name, orderingKey).message)
  return { name: JSON.stringify(update.message) === expected ? name : '', orderingKey }
}
