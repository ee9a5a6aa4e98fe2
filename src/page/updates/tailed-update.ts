/** Reads an event of a live tail about an update. Pure. */
import { updateIn } from '../../api/update-in.ts'
import { formatBytes } from '../elements/format.ts'
import { readableUpdate } from './readable-update.ts'

interface TailedUpdate {
  readonly updateId: number
  readonly text: string
}

/** Returns what is shown of it. The digits of its payload stay as they were pushed: JSON.parse would round large ids. */
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
