/** Why an update waits, for people. */

interface Waits {
  readonly update_id: number
  readonly subject?: string | null | undefined
  readonly waits_for?:
    | {
        readonly update_id: number
        readonly failures: number
        readonly last_error: string | null
        readonly next_attempt: number | null
      }
    | null
    | undefined
}

/** A sentence, whose parts may become links. */
export interface WaitText {
  readonly before: string
  /** The older update that it waits behind; undefined if it comes first itself. */
  readonly behind: number | undefined
  /** What follows the id, without an end. */
  readonly after: string
  /** When the next attempt is, in Unix seconds; undefined if no time is set. */
  readonly nextAttempt: number | undefined
}

/**
 * Returns why an update waits, such as `Waits behind`, 8622 and `of chat 101, which got 503 Service Unavailable 5 times`;
 * undefined if it only waits for its turn, or if the server does not say it.
 */
export function waitText({ update_id: id, subject, waits_for: wait }: Waits): WaitText | undefined {
  if (wait === null || wait === undefined) return undefined
  const { update_id: first, failures, last_error: error, next_attempt: next } = wait
  const nextAttempt = next ?? undefined
  const failed = failedText(failures, error)
  if (first !== id) {
    const whose = typeof subject === 'string' ? `of ${subject}` : 'of the same ordering key'
    const after = failures === 0 ? ` ${whose}` : ` ${whose}, which ${failed}`
    return { before: 'Waits behind ', behind: first, after, nextAttempt }
  }
  if (failures === 0) return undefined
  return { before: `It ${failed}`, behind: undefined, after: '', nextAttempt }
}

/** For example `got 503 Service Unavailable 5 times` or `failed twice: Connection refused`. */
function failedText(failures: number, error: string | null): string {
  const times = timesText(failures)
  if (error === null) return `failed ${times}`
  const response = /^Wrong response from the webhook: (.*)/.exec(error)?.[1]
  return response === undefined ? `failed ${times}: ${error}` : `got ${response} ${times}`
}

function timesText(count: number): string {
  return ['', 'once', 'twice'][count] ?? `${count} times`
}
