/** Where a list is scrolled to, in pixels. */
export interface ScrollState {
  readonly scrollTop: number
  readonly viewHeight: number
  readonly rowHeight: number
  readonly count: number
}

/** Rows `first` to `end`, without `end`. */
export interface RowRange {
  readonly first: number
  readonly end: number
}

/** Some rows above and below what is seen, so that a fast scroll shows no blank. */
const spareRows = 10

/**
 * Returns which rows of a long list must be in the page: the visible ones and some around them, however long the list is.
 */
export function visibleRows({ scrollTop, viewHeight, rowHeight, count }: ScrollState): RowRange {
  const top = Math.floor(Math.max(scrollTop, 0) / rowHeight)
  const shown = Math.ceil(viewHeight / rowHeight)
  const first = Math.max(0, Math.min(top, count - shown) - spareRows)
  return { first, end: Math.min(count, Math.max(top, 0) + shown + spareRows) }
}
