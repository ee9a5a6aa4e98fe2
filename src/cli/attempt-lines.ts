import type { Static } from 'typebox'
import * as is from '../api/words.ts'
import type { Unchanging } from '../api/operation.ts'
import { tableLines } from './output/print-result.ts'
import { itemTable } from './remote/cells.ts'

type AttemptJson = Unchanging<Static<ReturnType<typeof is.attempt>>>

/** Returns attempts for people. */
export function attemptLines({
  attempts,
  hasBodies = false,
  hasHeaders = false,
}: {
  readonly attempts: readonly AttemptJson[]
  readonly hasBodies?: boolean
  readonly hasHeaders?: boolean
}): readonly string[] {
  if (attempts.length === 0) return ['no attempts']
  const result = ['status', 'duration_ms', 'next_retry', 'error'] as const
  const fields = ['time', 'update_id', 'address', ...result] as const
  const shown = attempts.map(({ response_body: body, response_headers: headers, ...rest }) => ({
    ...rest,
    ...(hasHeaders ? { response_headers: headersText(headers) } : {}),
    ...(hasBodies ? { response_body: body } : {}),
  }))
  return tableLines(itemTable(is.attempt(), shown, fields, 'others'))
}

type Headers = NonNullable<AttemptJson['response_headers']>

/** Returns headers for people. */
export function headersText(headers: Headers | null | undefined): string | null {
  if (headers === null || headers === undefined) return null
  return headers.map(({ name, value }) => `${name}: ${value}`).join('; ')
}
