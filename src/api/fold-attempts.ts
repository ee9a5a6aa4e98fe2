/** What tells attempts apart. */
interface Ended {
  readonly time: number
  readonly update_id: number | null
  readonly status: number | null
  readonly error: string | null
}

/** Attempts in a row that ended in the same way, newest first. */
export interface FoldedAttempts<Attempt extends Ended> {
  /** Tells this line from others when the attempts are read again: it is that of the oldest attempt, which stays. */
  readonly key: string
  /** The newest. */
  readonly last: Attempt
  readonly attempts: readonly Attempt[]
}

/** Folds attempts in a row with the same status and error into one. */
export function foldAttempts<Attempt extends Ended>(
  attempts: readonly Attempt[],
): readonly FoldedAttempts<Attempt>[] {
  const folded: { last: Attempt; attempts: Attempt[] }[] = []
  for (const attempt of attempts) {
    const before = folded.at(-1)
    const isEqual =
      before !== undefined &&
      before.last.status === attempt.status &&
      before.last.error === attempt.error
    if (isEqual) before.attempts.push(attempt)
    else folded.push({ last: attempt, attempts: [attempt] })
  }
  return folded.map((each) => {
    const oldest = each.attempts.at(-1) ?? each.last
    return { ...each, key: `${oldest.time} ${oldest.update_id}` }
  })
}
