import type { StoreEntry } from '../store.ts'
import type { LevelIterator } from './level-handle.ts'

const emptyValue = Buffer.alloc(0)

/**
 * Reads to the end of the range or to the byte limit. leveldown returns one entry for each tick; entries that it has
 * read ahead are taken directly from its cache instead.
 */
export function readRange(
  iterator: LevelIterator,
  limits: { readonly limit: number; readonly valueBytesMax: number; readonly keysOnly: boolean },
  done: (error: Error | null | undefined, entries: StoreEntry[]) => void,
): void {
  const entries: StoreEntry[] = []
  let valueBytes = 0
  visit()

  function visit(): void {
    iterator.next((error, firstKey, firstValue) => {
      let key = firstKey
      let value = firstValue
      if (error || key === undefined) return done(error, entries)
      while (key !== undefined && value !== undefined) {
        entries.push({ key, value: limits.keysOnly ? emptyValue : value })
        valueBytes += value.length
        // Another `next` at the limit would be one more call on the thread pool.
        if (valueBytes >= limits.valueBytesMax || entries.length >= limits.limit) {
          return done(null, entries)
        }
        key = iterator.cache?.pop()
        value = iterator.cache?.pop()
      }
      visit()
    })
  }
}
