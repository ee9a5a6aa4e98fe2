/** The operator's view of a webhook, and the operator's hand on it: attempts, pause, resume (SPEC 9). */
import type { FastifyInstance } from 'fastify'
import { Type } from 'typebox'
import type { BotService } from '../bots/bot-service.ts'
import { webhookAttemptsKept } from '../limits.ts'
import type { Attempt } from '../webhook/attempt-log.ts'
import { botIdParam } from './bot-id-param.ts'

const test = Type.Boolean({ default: false })
const whichQueue = Type.Object({ test }, { additionalProperties: false })
const attemptsQuery = Type.Object(
  {
    test,
    limit: Type.Integer({ minimum: 1, maximum: webhookAttemptsKept, default: webhookAttemptsKept }),
  },
  { additionalProperties: false },
)

interface OfQueue {
  Params: { readonly id: string }
  Querystring: { readonly test: boolean }
}

interface AttemptsRequest {
  Params: { readonly id: string }
  Querystring: { readonly test: boolean; readonly limit: number }
}

export function addWebhookRoutes(
  app: FastifyInstance,
  { bots }: { readonly bots: BotService },
): void {
  app.get<AttemptsRequest>(
    '/v1/bots/:id/attempts',
    { schema: { querystring: attemptsQuery } },
    async ({ params, query }) => {
      const { webhook } = await bots.queueOf(botIdParam(params.id), query.test)
      return { attempts: webhook.attempts(query.limit).map((attempt) => attemptJson(attempt)) }
    },
  )
  for (const [action, isPaused] of [
    ['pause', true],
    ['resume', false],
  ] as const) {
    app.post<OfQueue>(
      `/v1/bots/:id/${action}`,
      { schema: { querystring: whichQueue } },
      async ({ params, query }) => {
        const { webhook } = await bots.queueOf(botIdParam(params.id), query.test)
        await webhook.setPaused(isPaused)
        return { paused: isPaused }
      },
    )
  }
}

function attemptJson(attempt: Attempt): object {
  return {
    time: unixSeconds(attempt.atMs),
    update_id: attempt.updateId === 0 ? null : attempt.updateId,
    address: attempt.address ?? null,
    status: attempt.status === 0 ? null : attempt.status,
    duration_ms: Math.round(attempt.durationMs),
    error: attempt.error ?? null,
    next_retry: Number.isNaN(attempt.nextRetryMs) ? null : unixSeconds(attempt.nextRetryMs),
  }
}

/** Seconds, with milliseconds as their fraction. */
export function unixSeconds(ms: number): number {
  return Math.round(ms) / 1_000
}
