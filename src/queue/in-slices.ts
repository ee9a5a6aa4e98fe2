/** Does something with a long list without holding the event loop: a slice in a turn. */
import { type Clock, nextTurn } from '../clock.ts'

export interface SliceOptions<Item> {
  readonly clock: Clock
  readonly sliceMax: number
  readonly visit: (slice: readonly Item[]) => void
}

/** The first slice at once. What `visit` is given may have changed since the list was made. */
export async function inSlices<Item>(
  items: readonly Item[],
  { clock, sliceMax, visit }: SliceOptions<Item>,
): Promise<void> {
  for (let start = 0; start < items.length; start += sliceMax) {
    if (start > 0) await nextTurn(clock)
    visit(items.slice(start, start + sliceMax))
  }
}
