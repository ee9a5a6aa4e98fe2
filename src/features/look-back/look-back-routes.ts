/** Routes that list, show and remove the updates of a bot, also those that have left its queue and are kept. */
import type { FastifyInstance } from 'fastify'
import type { BotQueue } from '../../bots/bot-queue.ts'
import type { BotRegistry } from '../../bots/registry.ts'
import { eraseUpdates } from './erase-updates.ts'
import { PostboteError } from '../../kit/errors.ts'
import { retentionBytesMax, retentionMsMax, webhookAttemptsKept } from '../../kit/limits.ts'
import { lookBackOperations } from './look-back-operations.ts'
import type { ResultOf } from '../../api/operation.ts'
import type { FoundUpdate, UpdateFilter } from '../../queue/kept/look-back.ts'
import type { Erasing } from '../../queue/kept/erase-kept.ts'
import { mentionsPerson } from '../../queue/kept/mentions-person.ts'
import { excerptOf } from '../../queue/kept/update-excerpt.ts'
import { keysMeantBy, subjectTextOf } from '../../queue/check/ordering-key.ts'
import { updateTypes } from '../../kit/update-types.ts'
import { readOrderingKey, refusal } from '../../api/update-options.ts'
import { addOperations, type HandledCall, queueOf } from '../../private-api/add-operations.ts'
import { fieldValues, jsonWithUpdate } from '../../private-api/field-values.ts'

type RetentionJson = ResultOf<typeof lookBackOperations.getRetention>
type SummaryJson = ResultOf<typeof lookBackOperations.listUpdates>['updates'][number]
type Selection = HandledCall<typeof lookBackOperations.listUpdates>['query']

export function addLookBackRoutes(app: FastifyInstance, bots: BotRegistry): void {
  addOperations(app, lookBackOperations, {
    async listUpdates(call) {
      const filter = filterOf(call.query)
      const { after: from, before, limit, excerpt = false } = call.query
      if (before !== undefined && from > 0) throw refusal('before', 'none with after', before)
      const queue = await queueOf(bots, call)
      const { lookBack } = queue.updates
      const { payer } = call.request
      if (before !== undefined) {
        const page = await lookBack.findNewest(filter, { before, limit }, payer)
        return listJson(queue, page.updates, { next: page.before, excerpt })
      }
      const { updates, after } = await lookBack.find(filter, { after: from, limit }, payer)
      return listJson(queue, updates, { next: after, excerpt })
    },
    async getUpdate(call) {
      const { update_id: updateId } = call.params
      const queue = await queueOf(bots, call)
      const update = await queue.updates.lookBack.get(updateId)
      if (update === undefined) throw new PostboteError('UNKNOWN_UPDATE', { detail: `${updateId}` })
      const attempts = queue.webhook.attempts(webhookAttemptsKept)
      const fields = {
        ...summaryJson(queue, update),
        latest_attempts: attempts
          .filter((attempt) => attempt.updateId === updateId)
          .map((attempt) => fieldValues.attempt(attempt)),
      }
      const body = jsonWithUpdate(fields, update.text)
      return call.reply.type('application/json').send(body)
    },
    async dropUpdate(call) {
      const { update_id: updateId } = call.params
      await (await queueOf(bots, call)).dropUpdate(updateId)
      return { update_id: updateId, removed: true as const }
    },
    async eraseUpdates({ params: { id }, query, request: { payer } }) {
      const isMeant = erasedBy(query)
      const queues = [await bots.queueOf(id, false), await bots.queueOf(id, true)]
      await bots.eraseBeside(id)
      const { pending, kept, dead, types, ...rest } = await eraseUpdates(queues, isMeant, payer)
      const byType = Array.from(types, ([typeNumber, count]) => ({
        type: updateTypes[typeNumber] ?? 'message',
        count,
      }))
      return { removed: { pending, kept, dead }, types: byType, ...rest }
    },
    async getRetention(call) {
      return retentionJson(await queueOf(bots, call))
    },
    async setRetention(call) {
      const { retain, retain_bytes: bytes } = call.body
      const seconds = ownBound('retain', retain, retentionMsMax / 1000)
      const bytesMax = ownBound('retain_bytes', bytes, retentionBytesMax)
      const queue = await queueOf(bots, call)
      await queue.setRetention({
        ...(seconds === undefined ? {} : { ms: seconds * 1000 }),
        ...(bytesMax === undefined ? {} : { bytes: bytesMax }),
      })
      return retentionJson(queue)
    },
  })
}

/**
 * Returns the value of a bound; undefined for null.
 *
 * @throws BAD_REQUEST
 */
function ownBound(name: string, value: unknown, max: number): number | undefined {
  if (value === null) return undefined
  const isInRange =
    typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= max
  if (isInRange) return value
  throw refusal(name, `a whole number from 0 to ${max}, or null for the server's option`, value)
}

function retentionJson({ id, retention, settings, shard }: BotQueue): RetentionJson {
  const { ms, bytes } = settings.retention ?? {}
  const kept = shard.kept.of(id)
  return {
    retain: ms === undefined ? null : ms / 1000,
    retain_bytes: bytes ?? null,
    in_effect: { retain: retention.ms / 1000, retain_bytes: retention.bytes },
    kept: kept.count,
    kept_bytes: kept.bytes,
  }
}

/**
 * Returns what tells which updates a call erases: those of a person, or those of a key.
 *
 * @throws BAD_REQUEST
 */
function erasedBy({ user, ordering_key: text }: Partial<Selection>): Erasing['isMeant'] {
  const key = readOrderingKey(text)
  if (user !== undefined) {
    if (text !== undefined) throw refusal('ordering_key', 'none with user', text)
    return (update) => mentionsPerson(update.text, user)
  }
  if (key === undefined)
    throw refusal('ordering_key', 'a key of at least one character, or user', text)
  const hasKey = keysMeantBy(key)
  return (update) => hasKey(update.orderingKey)
}

/** Returns what finds the updates that a call selects. Throws BAD_REQUEST. */
export function filterOf(selection: Partial<Selection>): UpdateFilter {
  const { state, type, ordering_key: text, user, since, until } = selection
  const key = readOrderingKey(text)
  return {
    state,
    typeNumber: type === undefined ? undefined : updateTypes.indexOf(type),
    hasKey: key === undefined ? undefined : keysMeantBy(key),
    hasText: user === undefined ? undefined : (stored) => mentionsPerson(stored, user),
    sinceS: since,
    untilS: until,
  }
}

function listJson(
  queue: BotQueue,
  updates: readonly FoundUpdate[],
  { next, excerpt }: { readonly next: number | undefined; readonly excerpt: boolean },
): ResultOf<typeof lookBackOperations.listUpdates> {
  const listed = updates.map((update) => ({
    ...summaryJson(queue, update),
    ...(excerpt ? { excerpt: excerptOf(update.text) } : {}),
  }))
  return { updates: listed, next: next ?? null }
}

function summaryJson({ webhook }: BotQueue, update: FoundUpdate): SummaryJson {
  const { leftAtMs } = update
  return {
    update_id: update.updateId,
    type: updateTypes[update.typeNumber] ?? 'message',
    ordering_key: update.orderingKey,
    subject: subjectTextOf(update.orderingKey) ?? null,
    state: update.state,
    accepted: update.acceptedAtS,
    left: leftAtMs === undefined ? null : fieldValues.preciseTime(leftAtMs),
    attempts: update.attempts ?? null,
    last_error: update.lastError ?? null,
    bytes: update.text.length,
    ...fieldValues.trace(update),
    waits_for: waitJson(webhook, update),
  }
}

/** The queue may have gone on since the update was read. */
function waitJson(
  webhook: Pick<BotQueue['webhook'], 'waitsFor'>,
  { state, updateId, orderingKey }: FoundUpdate,
): SummaryJson['waits_for'] {
  const wait = state === 'pending' ? webhook.waitsFor(orderingKey) : undefined
  if (wait === undefined || wait.updateId > updateId) return null
  return {
    update_id: wait.updateId,
    failures: wait.failures,
    last_error: wait.lastError ?? null,
    next_attempt: fieldValues.timeOrNull(wait.nextAttemptMs),
  }
}
