/** Errors of the private API: `{"error":{"code":"QUEUE_FULL","message":"..."}}` with the code's status. */
import type { PostboteError } from '../errors.ts'

export function privateErrorText({ code, message }: PostboteError): string {
  return JSON.stringify({ error: { code, message } })
}
