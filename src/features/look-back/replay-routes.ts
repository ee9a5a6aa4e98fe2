/** Routes that push updates again which have left their queue, and that show and end the jobs that do so. */
import type { FastifyInstance } from 'fastify'
import type { BotRegistry } from '../../bots/registry.ts'
import type { ReplayJobs, ReplayOrder } from './replay-jobs.ts'
import { PostboteError } from '../../kit/errors.ts'
import type { ResultOf } from '../../api/operation.ts'
import { replayOperations } from './replay-operations.ts'
import { updateTypes } from '../../kit/update-types.ts'
import type { ReplayRecord } from '../../shard/records/replay-record.ts'
import type { StoredReplay } from '../../shard/records/stored-records.ts'
import { readOrderingKey } from '../../api/update-options.ts'
import { addOperations, type HandledCall, queueOf } from '../../private-api/add-operations.ts'
import { fieldValues } from '../../private-api/field-values.ts'

type ReplayJson = ResultOf<typeof replayOperations.getReplay>

export function addReplayRoutes(
  app: FastifyInstance,
  bots: BotRegistry,
  replays: ReplayJobs,
): void {
  addOperations(app, replayOperations, {
    async replayUpdate(call) {
      const outcome = await replays.one(await queueOf(bots, call), call.params.update_id)
      return outcome === 'filtered' ? { filtered: true as const } : { update_id: outcome }
    },
    async startReplay(call) {
      const order = orderOf(call.body)
      const { payer } = call.request
      const queue = await queueOf(bots, call)
      if (call.body.dry_run) {
        const { count, bytes, isComplete } = await replays.count(queue, order, payer)
        return { dry_run: true as const, count, bytes, is_complete: isComplete }
      }
      const started = await replays.begin(queue, order, payer)
      const json = replayJson(started)
      return started.isDuplicate ? { ...json, duplicate: true as const } : json
    },
    async listReplays(call) {
      const listed = await replays.list(await queueOf(bots, call))
      return { replays: listed.map((replay) => replayJson(replay)) }
    },
    async getReplay(call) {
      const listed = await replays.list(await queueOf(bots, call))
      return replayJson(existing(listed.find(({ jobId }) => jobId === call.params.job_id)))
    },
    async cancelReplay(call) {
      return replayJson(
        existing(await replays.cancel(await queueOf(bots, call), call.params.job_id)),
      )
    },
  })
}

function existing(replay: StoredReplay | undefined): StoredReplay {
  if (replay === undefined) throw new PostboteError('UNKNOWN_REPLAY')
  return replay
}

/** Throws BAD_REQUEST. */
function orderOf(body: HandledCall<typeof replayOperations.startReplay>['body']): ReplayOrder {
  const { state, type, since, until, rate, idempotency_key: idempotencyKey } = body
  const orderingKey = readOrderingKey(body.ordering_key)
  return {
    selection: {
      ...(state === undefined ? {} : { state }),
      ...(type === undefined ? {} : { typeNumber: updateTypes.indexOf(type) }),
      ...(orderingKey === undefined ? {} : { orderingKey }),
      ...(since === undefined ? {} : { sinceS: since }),
      untilS: until,
    },
    rate,
    idempotencyKey,
  }
}

function replayJson({ jobId, record }: StoredReplay): ReplayJson {
  const { selection, endedAtMs } = record
  const { state, typeNumber, orderingKey, sinceS, untilS } = selection
  return {
    job_id: jobId,
    state: record.state,
    reason: record.reason ?? null,
    filter: {
      state: state ?? null,
      type: typeNumber === undefined ? null : (updateTypes[typeNumber] ?? null),
      ordering_key: orderingKey ?? null,
      since: sinceS ?? null,
      until: untilS,
    },
    rate: record.rate,
    started: fieldValues.preciseTime(record.startedAtMs),
    ended: endedAtMs === undefined ? null : fieldValues.preciseTime(endedAtMs),
    total: record.total ?? null,
    replayed: record.replayed,
    skipped: { filtered: record.filtered, too_large: record.tooLarge, gone: goneOf(record) },
    next: record.next,
    end: record.end,
  }
}

/** What was counted at the start, and was not kept any more when the job came to it. */
function goneOf({ state, total, replayed, filtered, tooLarge }: ReplayRecord): number {
  if (state !== 'done' || total === undefined) return 0
  return Math.max(0, total - replayed - filtered - tooLarge)
}
