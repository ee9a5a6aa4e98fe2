/** Builds a record that has one value for each key. */
export function recordOf<Key extends string, Value>(
  keys: readonly Key[],
  valueOf: (key: Key, index: number) => Value,
): Record<Key, Value> {
  const record = Object.fromEntries(keys.map((key, index) => [key, valueOf(key, index)]))
  // The type of Object.fromEntries does not keep the keys.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  return record as Record<Key, Value>
}
