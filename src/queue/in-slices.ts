/** Processes a long list without blocking the event loop: one slice per turn. */
import { type Clock, nextTurn } from '../clock.ts'

export interface SliceOptions<Item> {
  readonly clock: Clock
  readonly sliceMax: number
  readonly visit: (slice: readonly Item[]) => void
}

/**
 * Calls `visit` with one slice of `items` after the other, the first one immediately. An item may have changed since the
 * list was made.
 */
export async function inSlices<Item>(
  items: readonly Item[],
  { clock, sliceMax, visit }: SliceOptions<Item>,
): Promise<void> {
  for (let start = 0; start < items.length; start += sliceMax) {
    if (start > 0) await nextTurn(clock)
    visit(items.slice(start, start + sliceMax))
  }
}
