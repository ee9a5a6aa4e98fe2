/** A blocklist as long as operators use: 100,000 ranges of both families, none of which is reserved. */
export function longBlocklist(): readonly string[] {
  return Array.from({ length: 100_000 }, (_none, index) => {
    const high = index >> 8
    const low = index & 255
    return index % 4 === 3
      ? `2606:${high.toString(16)}:${low.toString(16)}::/48`
      : `${20 + (high >> 7)}.${high & 127}.${low}.${index % 2 === 0 ? 0 : 64}/${26 + (index % 3)}`
  })
}
