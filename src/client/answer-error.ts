/** What an answer of the private API says that is no success, be it for a call as a whole or for a line of a stream. */
import type { Dispatcher } from 'undici'
import { isServerCode, PostboteClientError } from './postbote-client-error.ts'

type AnswerHead = Pick<Dispatcher.ResponseData, 'statusCode' | 'headers'>

/** What an answer says that is not 200. */
export function answerError(
  { statusCode, headers }: AnswerHead,
  text: string,
): PostboteClientError {
  const status = statusCode
  const retryAfter = headers['retry-after']
  const retryAfterS =
    typeof retryAfter === 'string' && /^\d{1,9}$/.test(retryAfter) ? Number(retryAfter) : undefined
  const { code, message } = errorIn(parsedOrUndefined(text)) ?? {}
  if (code === undefined || !isServerCode(code)) {
    const shown = code === undefined ? `status ${status}` : `status ${status}, code ${code}`
    // What the public listener says of a path that it does not have.
    const hint =
      code === undefined && status === 404 ? ': is url that of the private listener?' : ''
    return new PostboteClientError('UNEXPECTED_ANSWER', {
      message: `Expected an answer of Postbote, got ${shown}${hint}`,
      status,
      retryAfterS,
    })
  }
  return new PostboteClientError(code, { message, status, retryAfterS })
}

/** The error in an answer, or in a line of a stream's; undefined where there is none. */
export function errorIn(
  answer: unknown,
): { readonly code: string; readonly message: string | undefined } | undefined {
  if (!isRecord(answer) || !isRecord(answer['error'])) return undefined
  const { code, message } = answer['error']
  if (typeof code !== 'string' || !/^\w{1,64}$/.test(code)) return undefined
  return { code, message: typeof message === 'string' ? message : undefined }
}

export function isRecord(of: unknown): of is Readonly<Record<string, unknown>> {
  return typeof of === 'object' && of !== null && !Array.isArray(of)
}

/** The content of a text that should be JSON. */
export function parsedOrUndefined(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
