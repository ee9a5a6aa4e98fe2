/** The bot API methods that this server implements, by their names in lower case. */
import type { BotQueue } from '../bots/bot-queue.ts'
import type { Method } from './method-call.ts'
import { close } from './close.ts'
import { demoMethods } from './demo-methods.ts'
import { deleteWebhook } from './delete-webhook.ts'
import { getMe } from './get-me.ts'
import { getUpdates } from './get-updates.ts'
import { getWebhookInfo, getWebhookInfoWith } from './get-webhook-info.ts'
import { logOut } from './log-out.ts'
import { makeSetWebhook, type SetWebhookOptions } from './set-webhook.ts'
import type { OwnMethodName } from '../http/target.ts'
import type { Log } from '../kit/surroundings.ts'

const simpleMethods: Readonly<Record<Exclude<OwnMethodName, 'setwebhook'>, Method>> = {
  getupdates: getUpdates,
  deletewebhook: deleteWebhook,
  getwebhookinfo: getWebhookInfo,
  getme: getMe,
  logout: logOut,
  close,
}

export interface OwnMethodsOptions extends SetWebhookOptions {
  /** Returns the sentence about the health of a queue. Set if getWebhookInfo has it. */
  readonly healthOf?: ((queue: BotQueue) => Promise<string>) | undefined
  /** Set if the server has the methods of a demo, and logs what they send. */
  readonly demoLog?: Pick<Log, 'info'> | undefined
}

export function makeOwnMethods(options: OwnMethodsOptions): ReadonlyMap<string, Method> {
  const { demoLog, healthOf } = options
  return new Map([
    ...Object.entries(simpleMethods),
    ...(healthOf === undefined ? [] : [['getwebhookinfo', getWebhookInfoWith(healthOf)] as const]),
    ['setwebhook', makeSetWebhook(options)],
    ...(demoLog === undefined ? [] : demoMethods(demoLog)),
  ])
}
