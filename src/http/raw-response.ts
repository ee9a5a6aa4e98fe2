/**
 * Complete HTTP responses for connections without a request object: those that the primary refuses, and those whose bytes
 * the HTTP parser cannot read. The body has the form of the listener (protocol.md §3 and 9).
 */
import { STATUS_CODES } from 'node:http'
import { privateErrorText } from './private-error.ts'
import type { PostboteError } from '../kit/errors.ts'
import { errorReplyText } from './reply.ts'
import type { ListenerKind } from './listener.ts'

export function rawResponse(listener: ListenerKind, error: PostboteError): Buffer {
  const body = errorBody(listener, error)
  const retry = error.retryAfterS === undefined ? '' : `Retry-After: ${error.retryAfterS}\r\n`
  return Buffer.from(
    `HTTP/1.1 ${error.status} ${STATUS_CODES[error.status] ?? 'Error'}\r\n` +
      'Content-Type: application/json\r\n' +
      `Content-Length: ${Buffer.byteLength(body)}\r\n${retry}Connection: close\r\n\r\n${body}`,
  )
}

export function errorBody(listener: ListenerKind, error: PostboteError): string {
  return listener === 'private' ? privateErrorText(error) : errorReplyText(error)
}
