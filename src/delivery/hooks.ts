/** What the deliveries of a worker tell its modules, and ask of them (kit/modules.ts). */
import type { Modules } from '../kit/modules.ts'
import type { Attempt } from './attempts/attempt.ts'
import type { AttemptOutcome } from './attempts/attempt-log.ts'
import type { DispatcherOptions } from './dispatcher.ts'
import type { TraceOfAttempt } from './endpoint/connection-set.ts'
import type { DispatcherRequest, WebhookOfQueue } from './webhook-services.ts'

/** A change of a webhook that its operator should know at once, and why it came. */
export interface WebhookTurn {
  readonly type: 'webhook.failing' | 'webhook.recovered' | 'webhook.removed'
  readonly reason?: string | undefined
}

export interface DeliveryHooks {
  webhookTurned?(webhook: WebhookOfQueue, turn: WebhookTurn): void
  /** An attempt has ended; its health and its record are told already. */
  attempted?(webhook: WebhookOfQueue, attempt: Readonly<Attempt>, outcome: AttemptOutcome): void
  /** Returns what gives each attempt its place in a trace. The first module that returns it is asked. */
  traceOf?(webhook: Pick<DispatcherRequest, 'queueId' | 'clock'>): TraceOfAttempt | undefined
}

type Told = Pick<
  DispatcherOptions,
  'onAttempt' | 'onFailing' | 'onGone' | 'onGoneClock' | 'onHealth' | 'onRecovered' | 'traceOf'
>

/** Returns what a dispatcher tells: its queue first, then the modules. */
export function toldBy(request: DispatcherRequest, modules: Modules<DeliveryHooks>): Told {
  const turned = (turn: WebhookTurn): void => void modules.each('webhookTurned', request, turn)
  return {
    onGone() {
      turned({ type: 'webhook.removed' })
      request.onGone()
    },
    onGoneClock: (sinceMs) => request.onGoneClock(sinceMs),
    onFailing: (reason) => turned({ type: 'webhook.failing', reason }),
    onRecovered: () => turned({ type: 'webhook.recovered' }),
    onHealth: () => request.onHealth(),
    onAttempt(attempt, outcome) {
      if (outcome !== 'delivered') request.onAttemptFailed()
      modules.each('attempted', request, attempt, outcome)
    },
    traceOf: modules.each('traceOf', request).find((trace) => trace !== undefined),
  }
}
