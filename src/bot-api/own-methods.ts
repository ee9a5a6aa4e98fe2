/**
 * The bot API methods that this server implements, by their names in lower case. Those of a few lines are here; one with more
 * of its own has a file.
 */
import type { BotQueue } from '../bots/bot-queue.ts'
import type { Method, ResultReply, MethodCall } from './method-call.ts'
import { demoMethods } from './demo-methods.ts'
import { getUpdates } from './get-updates.ts'
import { makeSetWebhook } from './set-webhook.ts'
import type { OwnMethodName } from '../http/target.ts'
import type { Log } from '../kit/surroundings.ts'
import { paramsNote } from './params-note.ts'
import { defaultTypesMask, typesOf } from '../kit/update-types.ts'

const simpleMethods: Readonly<Record<Exclude<OwnMethodName, 'setwebhook'>, Method>> = {
  getupdates: getUpdates,
  deletewebhook: deleteWebhook,
  getwebhookinfo: getWebhookInfo,
  getme: getMe,
  logout: logOut,
  close,
}

export interface OwnMethodsOptions {
  /** The value of `--max-webhook-connections`. */
  readonly webhookConnectionsMax: number
  /** Returns the form of a token that may be stored. Set if replies of webhooks are sent to an upstream server. */
  readonly sealToken?: ((token: string) => string) | undefined
  /** Returns the sentence about the health of a queue. Set if getWebhookInfo has it. */
  readonly healthOf?: ((queue: BotQueue) => Promise<string>) | undefined
  /** Set if the server has the methods of a demo, and logs what they send. */
  readonly demoLog?: Pick<Log, 'info'> | undefined
}

export function makeOwnMethods(options: OwnMethodsOptions): ReadonlyMap<string, Method> {
  const { demoLog, healthOf, sealToken, webhookConnectionsMax } = options
  return new Map([
    ...Object.entries(simpleMethods),
    ...(healthOf === undefined ? [] : [['getwebhookinfo', getWebhookInfoWith(healthOf)] as const]),
    ['setwebhook', makeSetWebhook(webhookConnectionsMax, sealToken)],
    ...(demoLog === undefined ? [] : demoMethods(demoLog)),
  ])
}

/** protocol.md §6: logOut returns true and changes nothing durable; webhooks go on. */
function logOut(): ResultReply {
  return { result: 'true' }
}

/**
 * protocol.md §6: close returns true and changes nothing durable; webhooks go on.
 *
 * A waiting poll ends with an empty list, as it does when the server ends (protocol.md §10). The reference server ends it with
 * "500 Internal Server Error: restart", because its part for the bot ends. Nothing restarts here, and every framework
 * continues after an empty list without an error.
 */
function close({ queue }: Pick<MethodCall, 'queue'>): ResultReply {
  queue.poller.end()
  return { result: 'true' }
}

/** protocol.md §6. allowed_updates keep their value. */
async function deleteWebhook({ params, queue }: MethodCall): Promise<ResultReply> {
  const dropsPending = params.boolean('drop_pending_updates')
  queue.note('deleteWebhook', paramsNote('deleteWebhook', params, ['drop_pending_updates']))
  const description = await queue.webhook.delete(dropsPending)
  return { result: 'true', description }
}

/** protocol.md §6: has every field that the reference always sends, because typed clients reject the object without them. */
function getMe({ queue }: MethodCall): ResultReply {
  const { botId, record } = queue.bot
  return {
    result: JSON.stringify({
      id: botId,
      is_bot: true,
      first_name: record.firstName,
      username: record.username,
      can_join_groups: true,
      can_read_all_group_messages: false,
      supports_inline_queries: false,
      can_connect_to_business: false,
      has_main_web_app: false,
      has_topics_enabled: false,
      allows_users_to_create_topics: false,
      can_manage_bots: false,
      supports_guest_queries: false,
    }),
  }
}

/** protocol.md §6. Has official fields only, because strictly typed clients reject others. */
function getWebhookInfo(call: MethodCall): ResultReply {
  return { result: JSON.stringify(webhookInfo(call)) }
}

/**
 * The same with `--health-in-webhook-info`: the author of the bot sees why nothing arrives, without a key.
 *
 * @param healthOf - returns the sentence about the health of a queue
 */
function getWebhookInfoWith(healthOf: (queue: BotQueue) => Promise<string>): Method {
  return async (call) => {
    const health = await healthOf(call.queue)
    return { result: JSON.stringify({ ...webhookInfo(call), health }) }
  }
}

function webhookInfo({ queue }: MethodCall): object {
  const { webhook, allowedTypes = defaultTypesMask } = queue.settings
  const info = queue.webhook.info()
  return {
    url: webhook?.url ?? '',
    has_custom_certificate: webhook?.certificate !== undefined,
    pending_update_count: queue.updates.pendingCount,
    ip_address: webhook === undefined ? undefined : (webhook.ipAddress ?? info.ipAddress),
    last_error_date: info.lastErrorDateS,
    last_error_message: info.lastErrorMessage,
    max_connections: info.maxConnections,
    allowed_updates: allowedTypes === defaultTypesMask ? undefined : typesOf(allowedTypes),
  }
}
