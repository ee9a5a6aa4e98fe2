/** Routes that show the attempts of a webhook, and pause and resume it (protocol.md §9). */
import type { FastifyInstance } from 'fastify'
import { Type } from 'typebox'
import type { BotService } from '../bots/bot-service.ts'
import { webhookAttemptsKept } from '../limits.ts'
import type { Attempt } from '../webhook/attempt-log.ts'
import { type OfQueue, queueOf, queueQuery } from './queue-query.ts'
import { unixSeconds } from './unix-seconds.ts'

const anyQueue = queueQuery()
const attemptsQuery = queueQuery({
  limit: Type.Integer({ minimum: 1, maximum: webhookAttemptsKept, default: webhookAttemptsKept }),
})

interface AttemptsRequest extends OfQueue {
  Querystring: OfQueue['Querystring'] & { readonly limit: number }
}

export function addWebhookRoutes(app: FastifyInstance, bots: BotService): void {
  app.get<AttemptsRequest>(
    '/v1/bots/:id/attempts',
    { schema: { querystring: attemptsQuery } },
    async (request) => {
      const { webhook } = await queueOf(bots, request)
      const attempts = webhook.attempts(request.query.limit)
      return { attempts: attempts.map((attempt) => attemptJson(attempt)) }
    },
  )
  for (const [action, isPaused] of [
    ['pause', true],
    ['resume', false],
  ] as const) {
    app.post<OfQueue>(
      `/v1/bots/:id/${action}`,
      { schema: { querystring: anyQueue } },
      async (request) => {
        const { webhook } = await queueOf(bots, request)
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
