/** What an examination of a database or of a machine has found: a sentence for the operator that says what to do. */
export interface Finding {
  /** `bad`: acknowledged updates may be lost, or nothing works. `warn`: something is slow or will be. */
  readonly level: 'good' | 'warn' | 'bad'
  readonly text: string
}

export function good(text: string): Finding {
  return { level: 'good', text }
}

export function warn(text: string): Finding {
  return { level: 'warn', text }
}

export function bad(text: string): Finding {
  return { level: 'bad', text }
}

/** This many names are listed; a cluster has up to 256 shards. */
const listedMax = 8

/** Returns names as a part of a sentence: `3, 5 and 9`, or `0, 1, 2, ... (64 in all)`. */
export function listed(names: readonly (number | string)[]): string {
  if (names.length > listedMax) {
    return `${names.slice(0, listedMax).join(', ')}, ... (${names.length} in all)`
  }
  const [last, ...others] = names.toReversed()
  return others.length === 0 ? `${last}` : `${others.toReversed().join(', ')} and ${last}`
}
