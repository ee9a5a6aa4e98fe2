/**
 * Sends the methods that webhooks name in their responses to the upstream bot API server (`--upstream`).
 *
 * As the reference does, it sends each once, with the same body and Content-Type, and reports the outcome to no one. It
 * does not send methods that begin with `get`, whose results would be lost, nor methods about the connection.
 *
 *     read (ReplyReader) --take--> its turn within its ordering key, its bot --> a free connection --> sent or failed
 *            |                            |
 *            +---- no room ---------------+---- too old, no token ----> dropped
 *
 * Everything is bounded: the bytes and the number of replies per worker, the number per webhook, the connections, and the time
 * that a reply may take including all waiting. A slow upstream therefore costs replies, but neither memory nor a delivery.
 */
import assert from 'node:assert/strict'
import type { Pool } from 'undici'
import { meteredPool } from '../delivery/outgoing/metered-pool.ts'
import { upstreamConnectTimeoutMs } from './limits.ts'
import type { ReplyIntake, WebhookReply } from '../delivery/attempts/reply-reader.ts'
import { KeyedSemaphore } from '../kit/semaphore.ts'
import { upstreamPath, type UpstreamUrl } from '../http/server-origin.ts'
import { mib } from '../kit/limits.ts'
import type { Surroundings } from '../kit/surroundings.ts'
import { type BodyKind, bodyKindOf, paramsOfBody } from './params.ts'
import { isMethodName } from '../http/target.ts'

const kindsWithMethod: ReadonlySet<BodyKind> = new Set(['json', 'urlencoded', 'multipart'])

/** Methods about the bot's connection, not about its users. A reply must not change the connection. */
const notSent: ReadonlySet<string> = new Set(['setwebhook', 'deletewebhook', 'close', 'logout'])

/** A webhook whose replies are sent to the upstream server. */
export interface ReplyingWebhook {
  readonly sealedToken: string
  readonly isTest: boolean
}

interface NamedReply {
  readonly method: string
  readonly contentType: string
  readonly body: Buffer
}

/**
 * The replies in a worker, being read or waiting for the upstream server, may have this many bytes; further ones are
 * dropped.
 */
export const webhookRepliesBytesMax = 64 * mib
/** A worker holds this many replies: at 16 connections and 50 ms per call they take three seconds. */
export const webhookRepliesMax = 1_000
/** One bot may have this many of these replies, a tenth, so that its flood does not displace those of others. */
export const webhookRepliesPerBotMax = 100
/**
 * Replies use this many connections to the upstream server. Chosen: at 50 ms per call that is 320 replies a second per
 * worker; more would load the upstream server more.
 */
export const webhookReplyConnectionsMax = 16
/** One bot may use this many of these connections, a quarter, so that its slow calls leave connections for others. */
export const webhookReplyConnectionsPerBotMax = 4
/** A reply must be done this long after the webhook's response, including its wait; a later reply confuses users. */
export const webhookReplyTimeoutMs = 60_000

export class UpstreamReplies {
  readonly #upstream: UpstreamUrl
  readonly #surroundings: Pick<Surroundings, 'clock' | 'counters'>
  readonly #openToken: (sealed: string) => string | undefined
  readonly #pool: Pool
  readonly #open = new Set<Promise<void>>()
  readonly #repliesOfBot = new KeyedSemaphore(webhookReplyConnectionsPerBotMax)
  #heldBytes = 0

  /** @param openToken - returns a stored token, or undefined if it cannot be decrypted */
  constructor(
    upstream: UpstreamUrl,
    surroundings: Pick<Surroundings, 'clock' | 'counters'>,
    openToken: (sealed: string) => string | undefined,
  ) {
    this.#upstream = upstream
    this.#surroundings = surroundings
    this.#openToken = openToken
    this.#pool = meteredPool(upstream.origin, {
      connections: webhookReplyConnectionsMax,
      connect: { timeout: upstreamConnectTimeoutMs },
      headersTimeout: webhookReplyTimeoutMs,
      bodyTimeout: webhookReplyTimeoutMs,
    })
  }

  intakeOf(webhook: ReplyingWebhook): ReplyIntake {
    const { counters } = this.#surroundings
    const turns = new Map<string, Promise<void>>()
    let waiting = 0
    return {
      wants: mayNameMethod,
      reserve: (bytes) => this.#reserve(bytes),
      release: (bytes) => this.#release(bytes),
      dropped: () => counters.add('webhook_replies_dropped', 1),
      take: ({ orderingKey, contentType, body }: WebhookReply) => {
        const method = replyMethod(contentType, body)
        const hasRoom = waiting < webhookRepliesPerBotMax && this.#open.size < webhookRepliesMax
        if (method === undefined || !hasRoom) {
          this.#release(body.length)
          if (method !== undefined) counters.add('webhook_replies_dropped', 1)
          return
        }
        waiting += 1
        const before = turns.get(orderingKey)
        const turn = this.#send(webhook, { method, contentType, body }, before).finally(() => {
          waiting -= 1
          this.#open.delete(turn)
          this.#release(body.length)
          if (turns.get(orderingKey) === turn) turns.delete(orderingKey)
        })
        turns.set(orderingKey, turn)
        this.#open.add(turn)
      },
    }
  }

  /** Resolves when every reply taken so far has been sent or given up. */
  async settled(): Promise<void> {
    await Promise.all(this.#open)
  }

  /** Gives up all replies that are still open. */
  async close(): Promise<void> {
    await this.#pool.destroy()
  }

  /** Sends a reply in its turn. Never rejects. */
  async #send(webhook: ReplyingWebhook, reply: NamedReply, before?: Promise<void>): Promise<void> {
    const { clock, counters } = this.#surroundings
    const aborter = new AbortController()
    const timer = clock.after(webhookReplyTimeoutMs, () => aborter.abort())
    let endTurn: (() => void) | undefined
    try {
      await before
      await new Promise<void>((start) => {
        endTurn = this.#repliesOfBot.enter(webhook.sealedToken, start)
      })
      const token = this.#openToken(webhook.sealedToken)
      if (token === undefined || aborter.signal.aborted) {
        counters.add('webhook_replies_dropped', 1)
        return
      }
      const isSent = await this.#post({ ...reply, token, isTest: webhook.isTest }, aborter.signal)
      counters.add(isSent ? 'webhook_replies_sent' : 'webhook_replies_failed', 1)
    } finally {
      timer.cancel()
      endTurn?.()
    }
  }

  async #post(
    call: NamedReply & { readonly token: string; readonly isTest: boolean },
    signal: AbortSignal,
  ): Promise<boolean> {
    try {
      const { statusCode, body } = await this.#pool.request({
        method: 'POST',
        path: upstreamPath(this.#upstream, call),
        headers: ['Content-Type', call.contentType],
        body: call.body,
        signal,
      })
      await body.dump()
      return statusCode >= 200 && statusCode < 300
    } catch {
      // The error's text may contain the path, and with it the token.
      return false
    }
  }

  #reserve(bytes: number): boolean {
    if (this.#heldBytes + bytes > webhookRepliesBytesMax) return false
    this.#heldBytes += bytes
    return true
  }

  #release(bytes: number): void {
    this.#heldBytes -= bytes
    assert(this.#heldBytes >= 0, 'a reply is released once')
  }
}

export function mayNameMethod(contentType: string): boolean {
  return kindsWithMethod.has(bodyKindOf(contentType))
}

/**
 * Returns the method that a response names, read as leniently as the parameters of a call: as it is written, or undefined if there
 * is none or if it is not sent on.
 */
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
