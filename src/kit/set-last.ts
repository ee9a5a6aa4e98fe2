/**
 * Makes an entry the one of a map that was used last, as a Map keeps the order in which its keys were set.
 *
 * @param max - the entries that the map may have
 * @returns the key that was used least lately, if there is one too many now: its entry is still there
 */
export function setLast<Key, Value>(
  map: Map<Key, Value>,
  [key, value]: readonly [Key, Value],
  max: number,
): Key | undefined {
  map.delete(key)
  map.set(key, value)
  if (map.size <= max) return undefined
  const [oldest] = map.keys()
  return oldest
}
