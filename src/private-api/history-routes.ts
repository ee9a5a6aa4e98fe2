/**
 * Shows the deliveries of a webhook in the last hour, minute by minute, as columns: that is what a chart takes. Minutes
 * without deliveries have zeros, and a time without responses is null.
 */
import type { FastifyInstance } from 'fastify'
import type { BotService } from '../bots/bot-service.ts'
import { outcomes } from '../webhook/attempt-log.ts'
import type { HistoryMinute } from '../webhook/delivery-history.ts'
import { deliveryHistoryMinutes } from '../webhook/limits.ts'
import { type OfQueue, queueOf, queueQuery } from './queue-query.ts'

export interface HistoryRoutesOptions {
  readonly bots: BotService
}

const anyQueue = queueQuery()

export function addHistoryRoutes(app: FastifyInstance, { bots }: HistoryRoutesOptions): void {
  app.get<OfQueue>(
    '/v1/bots/:id/history',
    { schema: { querystring: anyQueue } },
    async (request) => {
      const { clock, webhook } = await queueOf(bots, request)
      return historyJson(webhook.lastHour(), clock.nowMs())
    },
  )
}

function historyJson(minutes: readonly HistoryMinute[], nowMs: number): object {
  const first = Math.floor(nowMs / 60_000) - deliveryHistoryMinutes + 1
  const byMinute = new Map(minutes.map((each) => [each.minute, each]))
  const rows = Array.from({ length: deliveryHistoryMinutes }, (_, nth) => byMinute.get(first + nth))
  const countsOf = (index: number): number[] => rows.map((row) => row?.counts[index] ?? 0)
  return {
    from: first * 60,
    outcomes: Object.fromEntries(outcomes.map((outcome, index) => [outcome, countsOf(index)])),
    mean_ms: rows.map((row) => meanMs(row)),
    max_ms: rows.map((row) =>
      row === undefined || row.responses === 0 ? null : row.responseMsMax,
    ),
  }
}

function meanMs(row: HistoryMinute | undefined): number | null {
  if (row === undefined || row.responses === 0) return null
  return Math.round(row.responseMsSum / row.responses)
}
