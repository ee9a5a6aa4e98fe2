/** The method that a webhook's answer names, read as leniently as a call's parameters. */
import { type BodyKind, bodyKindOf, paramsOfBody } from '../bot-api/params.ts'
import { isMethodName } from '../bot-api/target.ts'

const kindsWithMethod: ReadonlySet<BodyKind> = new Set(['json', 'urlencoded', 'multipart'])

/** About the bot's connection and not about its users: a reply must not change it. */
const notSent: ReadonlySet<string> = new Set(['setwebhook', 'deletewebhook', 'close', 'logout'])

export function mayNameMethod(contentType: string): boolean {
  return kindsWithMethod.has(bodyKindOf(contentType))
}

/** As it is written; undefined where there is none, or one that is not sent on. */
export function replyMethod(contentType: string, body: Buffer): string | undefined {
  // Most answers are `{"ok":true}` or the like.
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
