/** Errors of the private API: `{"error":{"code":"QUEUE_FULL","message":"..."}}` with the code's status. */
import type { ServerResponse } from 'node:http'
import type { PostboteError } from '../kit/errors.ts'
import { requestIdHeader, requestIdOf } from './request-id.ts'

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
