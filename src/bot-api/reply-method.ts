/** Finds the method that a webhook's response names, as leniently as the parameters of a call are read. */
import { type BodyKind, bodyKindOf, paramsOfBody } from './params.ts'
import { isMethodName } from '../http/target.ts'

const kindsWithMethod: ReadonlySet<BodyKind> = new Set(['json', 'urlencoded', 'multipart'])

/** Methods about the bot's connection, not about its users. A reply must not change the connection. */
const notSent: ReadonlySet<string> = new Set(['setwebhook', 'deletewebhook', 'close', 'logout'])

export function mayNameMethod(contentType: string): boolean {
  return kindsWithMethod.has(bodyKindOf(contentType))
}

/** Returns the method as it is written, or undefined if there is none or if it is not sent on. */
export function replyMethod(contentType: string, body: Buffer): string | undefined {
  // Most responses are `{"ok":true}` or similar.
  if (!body.includes('method')) return undefined
  let method: string | undefined
  try {
    method = paramsOfBody(body, contentType).text('method')
  } catch {
    return undefined
  }
  if (method === undefined || !isMethodName(method)) return undefined
  const lower = method.toLowerCase()
  return lower.startsWith('get') || notSent.has(lower) ? undefined : method
}
