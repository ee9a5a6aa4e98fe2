/** Updates as people read them. Pure. */
import { updateIn } from '../../api/update-in.ts'
import { formatBytes } from '../elements/format.ts'

/** Returns an update with a line for each field; as it is if that would change it, as of a large number. */
export function readableUpdate(text: string): string {
  const update: unknown = JSON.parse(text)
  return JSON.stringify(update) === text ? JSON.stringify(update, undefined, 2) : text
}

interface TailedUpdate {
  readonly updateId: number
  readonly text: string
}

/**
 * Returns what is shown of an event of a live tail about an update. The digits of its payload stay as they were pushed:
 * JSON.parse would round large ids.
 */
export function tailedUpdate(data: string): TailedUpdate {
  const event: { readonly update_id: number; readonly type: string; readonly bytes: number } =
    JSON.parse(data)
  const update = updateIn(data)
  const payload = update === '' ? '' : `\n${readableUpdate(update)}`
  return {
    updateId: event.update_id,
    text: `  ${event.type}  ${formatBytes(event.bytes)}${payload}`,
  }
}
