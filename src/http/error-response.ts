/**
 * Complete responses with an error in the form of the listener (protocol.md §3 and 9): those that no route sends, for connections
 * that the primary refuses, bytes that the HTTP parser cannot read, and requests that are refused before a route has them.
 */
import { type ServerResponse, STATUS_CODES } from 'node:http'
import type { PostboteError } from '../kit/errors.ts'
import type { ListenerKind } from './listener.ts'
import { errorReplyText } from './reply.ts'
import { requestIdHeader, requestIdOf } from './request-id.ts'

/** Returns the bytes of a response that ends its connection. */
export function errorResponse(listener: ListenerKind, error: PostboteError): Buffer {
  const body = errorBody(listener, error)
  const retry = error.retryAfterS === undefined ? '' : `Retry-After: ${error.retryAfterS}\r\n`
  return Buffer.from(
    `HTTP/1.1 ${error.status} ${STATUS_CODES[error.status] ?? 'Error'}\r\n` +
      'Content-Type: application/json\r\n' +
      `Content-Length: ${Buffer.byteLength(body)}\r\n${retry}Connection: close\r\n\r\n${body}`,
  )
}

/** Returns the body of a refusal. */
export function errorBody(listener: ListenerKind, error: PostboteError): string {
  return listener === 'private' ? privateErrorText(error) : errorReplyText(error)
}

/** Returns `{"error":{"code":"QUEUE_FULL","message":"..."}}`, as the private API answers. */
export function privateErrorText({ code, message }: PostboteError): string {
  return JSON.stringify({ error: { code, message } })
}

/** Refuses a request before any route has it, and ends its connection. */
export function refusePrivate(response: ServerResponse, error: PostboteError): void {
  const text = privateErrorText(error)
  const headers = ['Content-Type', 'application/json', 'Content-Length', `${text.length}`]
  const retryAfter = ['Retry-After', `${error.retryAfterS ?? 1}`]
  const id = [requestIdHeader, requestIdOf(response.req)]
  response.writeHead(error.status, [...headers, ...retryAfter, ...id, 'Connection', 'close'])
  response.end(text)
}
