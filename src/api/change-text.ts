/** A change of a setting, as a person reads it in the audit: the command and the page say the same. */
interface Change {
  readonly field: string
  readonly from?: string | null | undefined
  readonly to?: string | null | undefined
}

/** Returns `paused: no -> yes`; of a change without values, such as that of a secret, `token: changed`. */
export function changeText({ field, from, to }: Change): string {
  if (from === undefined || to === undefined) return `${field}: changed`
  return `${field}: ${from ?? 'none'} -> ${to ?? 'none'}`
}
