/** Updates whose every byte follows from their name, so that whoever gets one can tell whether it is whole. */
import { createHash } from 'node:crypto'

/** In the message; a webhook's own key is left to the producer. */
export interface NamedUpdate {
  readonly message: {
    readonly text: string
    readonly key: string
    readonly padding: string
  }
}

/** `LANE.NUMBER.BYTES`: who pushed it, which of its updates it is, and how much padding it has. */
export function updateName(lane: string, number: number, paddingBytes: number): string {
  return `${lane}.${number}.${paddingBytes}`
}

export function namedUpdate(name: string, orderingKey: string): NamedUpdate {
  const bytes = Number(name.split('.')[2] ?? 0)
  // Not to be compressed: bytes on disk are what makes LevelDB change its files.
  const noise = createHash('shake256', { outputLength: Math.ceil((bytes * 3) / 4) })
  const padding = bytes === 0 ? '' : noise.update(name).digest('base64').slice(0, bytes)
  return { message: { text: name, key: orderingKey, padding } }
}

/** The name and key of an update that was received; the name is empty where it differs in any way. */
export function nameOf(update: Partial<NamedUpdate>): { name: string; orderingKey: string } {
  const name = String(update.message?.text)
  const orderingKey = String(update.message?.key)
  const expected = JSON.stringify(namedUpdate(name, orderingKey).message)
  return { name: JSON.stringify(update.message) === expected ? name : '', orderingKey }
}
