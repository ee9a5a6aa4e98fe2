/** Why the response to an attempt is not shown, although there was one. */

interface AttemptFacts {
  readonly error: string | null
  readonly status: number | null
  readonly response_headers?: object | null | undefined
}

export const droppedText =
  'The server keeps no answers of private addresses without --attempt-body-of-reserved, and none at all with --attempt-body 0.'

/** The headers of a response are missing only where its body would not be kept either. */
export function isResponseDropped({ error, status, ...attempt }: AttemptFacts): boolean {
  return error !== null && status !== null && attempt.response_headers === null
}
