/** Attempts as people read them: one a line, or those in a row that ended in the same way on one line. */
import type { Static } from 'typebox'
import * as is from '../api/words.ts'
import type { Unchanging } from '../api/operation.ts'
import { foldAttempts } from '../api/fold-attempts.ts'
import type { View } from './output/view.ts'
import { shownList } from './remote/result-lines.ts'

type AttemptJson = Unchanging<Static<ReturnType<typeof is.attempt>>>

/** Returns attempts for people. */
export function attemptLines(
  {
    attempts,
    columns,
    hasBodies = false,
    hasHeaders = false,
    isFolded = false,
    linesMax = Infinity,
  }: {
    readonly attempts: readonly AttemptJson[]
    /** Those of the row of the call that lists attempts. */
    readonly columns: readonly string[]
    readonly hasBodies?: boolean
    readonly hasHeaders?: boolean
    /** Whether those in a row that ended in the same way are one line with their number. */
    readonly isFolded?: boolean
    readonly linesMax?: number
  },
  view: View,
): readonly string[] {
  if (isFolded) {
    const folded = foldAttempts(attempts)
      .slice(0, linesMax)
      .map((each) => ({ ...each.last, times: each.attempts.length }))
    const item = is.object({ ...is.attempt().properties, times: is.integer() })
    const list = { item, items: folded, columns: ['times', ...columns] }
    return shownList(list, view, 'no attempts')
  }
  const items = attempts.slice(0, linesMax).map(({ response_headers: headers, ...rest }) => ({
    ...rest,
    response_headers: headersText(headers),
  }))
  const shown = [
    ...columns,
    ...(hasHeaders ? ['response_headers'] : []),
    ...(hasBodies ? ['response_body'] : []),
  ]
  return shownList({ item: shownAttempt(), items, columns: shown }, view, 'no attempts')
}

/** Headers are shown as a text that is never cut. */
function shownAttempt() {
  return is.object({ ...is.attempt().properties, response_headers: is.orNull(is.reason()) })
}

type Headers = NonNullable<AttemptJson['response_headers']>

/** Returns headers for people. */
export function headersText(headers: Headers | null | undefined): string | null {
  if (headers === null || headers === undefined) return null
  return headers.map(({ name, value }) => `${name}: ${value}`).join('; ')
}
