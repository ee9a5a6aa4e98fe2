/**
 * Records the calls that may change something, in the worker that has answered them. Which calls these are follows from the table
 * of operations (audit-operations.ts). A call that is refused before its handler runs has changed nothing and is not
 * recorded, so that nobody pushes the calls of others out with what they may not do.
 *
 *     handler --returns, throws, or sends--> onSend --recorded--> head and first byte of the response
 *
 * Fastify runs `onSend` before it writes anything, whichever way a handler answers, so a response that is a stream or was passed
 * on from another worker waits, too. A call that goes on after its first byte records what it does then by itself.
 */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { AuditWriter } from '../access/audit-writer.ts'
import { requestAccess } from '../access/request-access.ts'
import { isAudited, type Operation } from '../api/operation.ts'
import type { BotCache } from '../bots/bot-cache.ts'
import { requestIdOf } from '../http/request-id.ts'
import type { Clock } from '../kit/clock.ts'
import { toPostboteError } from '../kit/errors.ts'
import { botIdMax, botIdMin } from '../kit/limits.ts'
import type { BotQueue } from '../bots/bot-queue.ts'
import { type AuditChange, auditId, type RecordedCall } from '../shard/records/audit-record.ts'
import { settingChanges, type StoredSettings } from './setting-changes.ts'

/** A queue with what is stored of it and its bot. */
interface StoredQueueOf extends Pick<BotQueue, 'settings'> {
  readonly bot: Pick<BotQueue['bot'], 'record'>
}

/** The parts of `PrivateApiParts` that are used. */
interface RecordCallsOptions {
  isFromWorker(request: FastifyRequest): boolean
  readonly keys: {
    readonly audit: { readonly writer: Pick<AuditWriter, 'record'> }
    readonly registry: { readonly clock: Pick<Clock, 'nowMs'> }
  }
  readonly bots: {
    readonly bots: Pick<BotCache, 'usernameOf'>
    /** Rejects if the bot is not registered, or cannot be read. */
    queueOf(botId: number, isTest: boolean): Promise<StoredQueueOf>
  }
}

/** The bot in the path of a call: its username, and what is stored of it, as far as they can be known. */
interface AuditedBot {
  readonly username?: string | undefined
  readonly settings?: StoredSettings | undefined
}

/** What is recorded of the way in which a call, or a part of it, has ended. */
interface Ended {
  /** As it was before the call, which may remove it. */
  readonly before?: AuditedBot
  /** The settings that it changed. */
  readonly changes?: readonly AuditChange[] | undefined
  /** The body of the response, if the handler returns it. */
  readonly result?: unknown
  readonly error?: unknown
  /** The bots of a part of a call that is about many. */
  readonly botIds?: readonly number[]
}

/** Records a call, or a part of it. Resolves when its response may go out, or go on. */
type AuditCall = (request: FastifyRequest, ended: Ended) => Promise<void>

/** What records a call. */
interface Audit {
  readonly record: AuditCall
  readonly botIn: (request: FastifyRequest) => Promise<AuditedBot>
}

type Handle = (request: FastifyRequest, reply: FastifyReply) => Promise<unknown>

/** Has the calls of an app recorded, whose routes are added after this. */
export function recordCalls(app: FastifyInstance, options: RecordCallsOptions): void {
  const { audit, registry } = options.keys
  const record: FastifyInstance['auditCall'] = async (operation, request, ended) => {
    assert(isAudited(operation), 'only calls that may change something are recorded')
    // The worker that asks for it records the call of its client.
    if (options.isFromWorker(request)) return
    await audit.writer.record(recordedCall(operation, request, ended, registry.clock))
  }
  app.decorate('auditCall', record)
  app.decorate('auditedBot', async (request) => {
    const botId = botIdIn(Object(request.params).id)
    if (botId === undefined) return {}
    try {
      const { bot, settings } = await options.bots.queueOf(botId, isAboutTest(request))
      return { username: bot.record.username, settings: { bot: bot.record, queue: settings } }
    } catch {
      // Of one that is not registered, the handler says so. The name of one that cannot be loaded may be known.
      return { username: await options.bots.bots.usernameOf(botId) }
    }
  })
}

/** Returns what records a call; undefined if it is not recorded. */
export function auditOf(app: FastifyInstance, operation: Operation): Audit | undefined {
  if (!isAudited(operation) || !app.hasDecorator('auditCall')) return undefined
  return {
    record: (request, ended) => app.auditCall(operation, request, ended),
    botIn: (request) => app.auditedBot(request),
  }
}

/** Returns the parts of a route that record its call before its response begins. */
export function recorded(handle: Handle, { record, botIn }: Audit) {
  return {
    async handler(request: FastifyRequest, reply: FastifyReply): Promise<unknown> {
      const before = await botIn(request)
      // A handler that sends by itself comes to `onSend` before it returns.
      request.handled = { before }
      try {
        const result = await handle(request, reply)
        const changes = request.changes ?? changesOf(before, await botIn(request))
        request.handled &&= { before, changes, result }
        return result
      } catch (error) {
        request.handled &&= { before, error }
        throw error
      }
    },
    async onSend(request: FastifyRequest): Promise<void> {
      const { handled } = request
      if (handled === undefined) return
      request.handled = undefined
      await record(request, handled)
    },
  }
}

/** Another call about the same bot at the same time may have its share in them. */
function changesOf(before: AuditedBot, after: AuditedBot): readonly AuditChange[] | undefined {
  if (before.settings === undefined || after.settings === undefined) return undefined
  return settingChanges(before.settings, after.settings)
}

declare module 'fastify' {
  interface FastifyInstance {
    auditCall(operation: Operation, request: FastifyRequest, ended: Ended): Promise<void>
    auditedBot(request: FastifyRequest): Promise<AuditedBot>
  }
  interface FastifyRequest {
    /** The code of an error that another worker returned, and which the handler passes on. */
    passedOnCode?: string
    /** What the handler has changed that is no setting of the bot in the path. */
    changes?: readonly AuditChange[] | undefined
    /** The handler runs or has ended, and the call is not recorded yet. */
    handled?: Ended | undefined
  }
}

function recordedCall(
  operation: Operation,
  request: FastifyRequest,
  { before, changes, result, error, botIds }: Ended,
  clock: Pick<Clock, 'nowMs'>,
): RecordedCall {
  const access = requestAccess(request)
  const params: Fields = Object(request.params)
  const fields: Fields = { ...Object(request.body), ...Object(result), ...params }
  const timeMs = Math.floor(clock.nowMs())
  const code = error === undefined ? request.passedOnCode : toPostboteError(error).code
  const record = {
    timeMs,
    key: access === 'root' ? undefined : { id: access.id, name: access.name },
    operation: operation.id,
    call: `${operation.method} ${shownPath(operation.path, params)}`,
    botId: botIdIn(params['id'] ?? fields['bot_id']),
    username: before?.username ?? usernameOf(fields['username']),
    botIds,
    isTest: isAboutTest(request) ? true : undefined,
    onKey: shownId(fields['key_id']),
    changes,
    result: code ?? 'ok',
    requestId: requestIdOf(request.raw),
  }
  return { id: auditId(timeMs, randomBytes(4).toString('hex')), record }
}

function isAboutTest({ query }: FastifyRequest): boolean {
  return Object(query).test === true
}

type Fields = Readonly<Record<string, unknown>>

/** An id in a path may be anything that its sender likes, such as a whole key by mistake. */
function shownId(value: unknown): string | undefined {
  return typeof value === 'string' && /^(?:[0-9a-f]{1,16}|key_[\w-]{12})$/.test(value)
    ? value
    : undefined
}

function shownPath(path: string, params: Fields): string {
  return path.replaceAll(/:(\w+)/g, (_, name: string) => shownId(params[name]) ?? '***')
}

/** That of a call which registers a bot. One that was refused may have named anything. */
function usernameOf(value: unknown): string | undefined {
  return typeof value === 'string' && /^[^\p{C}]{1,64}$/u.test(value) ? value : undefined
}

/** A call that was refused may have named anything. */
function botIdIn(value: unknown): number | undefined {
  const id = Number(value)
  return Number.isInteger(id) && id >= botIdMin && id <= botIdMax ? id : undefined
}
