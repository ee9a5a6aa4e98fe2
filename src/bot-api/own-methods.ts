/** The methods of the bot API that this server has, by their names in lower case. */
import type { IncomingMessage } from 'node:http'
import type { Method } from './method-call.ts'
import { close } from './methods/close.ts'
import { deleteWebhook } from './methods/delete-webhook.ts'
import { getMe } from './methods/get-me.ts'
import { getUpdates } from './methods/get-updates.ts'
import { getWebhookInfo } from './methods/get-webhook-info.ts'
import { logOut } from './methods/log-out.ts'
import { makeSetWebhook, type SetWebhookOptions } from './methods/set-webhook.ts'
import { parseTarget } from './target.ts'

const simpleMethods = new Map<string, Method>([
  ['getupdates', getUpdates],
  ['deletewebhook', deleteWebhook],
  ['getwebhookinfo', getWebhookInfo],
  ['getme', getMe],
  ['logout', logOut],
  ['close', close],
])

export function makeOwnMethods(options: SetWebhookOptions): ReadonlyMap<string, Method> {
  return new Map([...simpleMethods, ['setwebhook', makeSetWebhook(options)]])
}

/** Whether a request is for a method that this server does not have or for a file, so that its body is not for us. */
export function isForeign(url: string): boolean {
  const target = parseTarget(url)
  if (target.kind !== 'method') return target.kind === 'file'
  return target.method !== 'setwebhook' && !simpleMethods.has(target.method)
}

/** SPEC 3: a method is run by GET and POST alone, ours and those of an upstream server. */
export function runsMethods({ method }: IncomingMessage): boolean {
  return method === 'GET' || method === 'POST'
}
