/** Reads the errors in responses of the private API, both of single calls and of lines of a stream. */
import type { Dispatcher } from 'undici'
import { clientResponseBytesMax } from './limits.ts'
import { isServerCode, PostboteClientError } from './postbote-client-error.ts'

type ResponseHead = Pick<Dispatcher.ResponseData, 'statusCode' | 'headers'>

/**
 * Converts a response with a status other than 200 into an error.
 *
 * @param head - Status code and headers of the response.
 * @param text - The response body.
 * @returns An error with the server's code, or UNEXPECTED_ANSWER if the body has no code that Postbote knows.
 *   `retryAfterS` is set if Retry-After is a number of seconds.
 */
export function responseError(
  { statusCode, headers }: ResponseHead,
  text: string,
): PostboteClientError {
  const status = statusCode
  const retryAfter = headers['retry-after']
  const retryAfterS =
    typeof retryAfter === 'string' && /^\d{1,9}$/.test(retryAfter) ? Number(retryAfter) : undefined
  const { code, message } = errorIn(parsedOrUndefined(text)) ?? {}
  if (code === undefined || !isServerCode(code)) {
    const shown = code === undefined ? `status ${status}` : `status ${status}, code ${code}`
    // The public listener responds with this to a path that it does not have.
    const hint =
      code === undefined && status === 404
        ? ': expected url to be the address of the private listener'
        : ''
    return new PostboteClientError('UNEXPECTED_ANSWER', {
      message: `Expected a response of Postbote, got ${shown}${hint}`,
      status,
      retryAfterS,
    })
  }
  return new PostboteClientError(code, { message, status, retryAfterS })
}

/** Returns the text of a body. Of one that is longer than `clientResponseBytesMax`, no more is read than shows that. */
export async function responseText(body: Dispatcher.ResponseData['body']): Promise<string> {
  let text = ''
  for await (const chunk of body) {
    text += String(chunk)
    if (text.length > clientResponseBytesMax) break
  }
  return text
}

/**
 * Returns the `error` object of a response body or of one result line of a stream.
 *
 * @param response - The parsed JSON.
 * @returns The code, unchecked against the known codes, and the message; undefined if there is no well-formed error.
 */
export function errorIn(
  response: unknown,
): { readonly code: string; readonly message: string | undefined } | undefined {
  if (!isRecord(response) || !isRecord(response['error'])) return undefined
  const { code, message } = response['error']
  if (typeof code !== 'string' || !/^\w{1,64}$/.test(code)) return undefined
  return { code, message: typeof message === 'string' ? message : undefined }
}

/** Whether a value is a JSON object, as opposed to null, an array or a scalar. */
export function isRecord(of: unknown): of is Readonly<Record<string, unknown>> {
  return typeof of === 'object' && of !== null && !Array.isArray(of)
}

/** Parses JSON and returns undefined for text that is not JSON. */
export function parsedOrUndefined(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
