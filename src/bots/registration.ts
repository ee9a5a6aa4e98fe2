/** What bots are registered with, and what comes of it. */
import type { PostboteError } from '../kit/errors.ts'
import type { PollsSetting } from '../shard/records/bot-record.ts'
import type { SetWebhookRequest } from './settings-change.ts'

/** A bot with what getMe returns. */
export interface NamedBot {
  readonly botId: number
  readonly firstName: string
  readonly username: string
}

/** What a bot is registered with. */
export interface Registration extends NamedBot {
  readonly polls?: PollsSetting | undefined
}

/** A token at the time of its creation. */
export interface IssuedToken {
  readonly botId: number
  /** Returned only here, because only its hash is stored. */
  readonly token: string
}

/** A registration that may be repeated. */
export interface KeyedRegistration extends Registration {
  /** A repetition with this key registers nothing. */
  readonly idempotencyKey: string
  /** Set with the registration in one write, if its endpoint can be verified. */
  readonly webhook?: Pick<SetWebhookRequest, 'webhook' | 'allowedTypes'> | undefined
  /** Returns the form of the token that may be stored with the webhook. */
  readonly sealToken?: ((token: string) => string) | undefined
}

/** A bot that was registered now, or before with the same key. */
export type KeyedBot =
  | (IssuedToken & {
      /** Why it has no webhook, although it was asked for one. */
      readonly webhookError?: PostboteError
    })
  | { readonly botId: number; readonly isDuplicate: true }
