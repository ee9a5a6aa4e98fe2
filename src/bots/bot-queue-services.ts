/** What the queues of all bots of a worker share. */
import type { Clock } from '../clock.ts'
import type { Counters } from '../counters.ts'
import type { ReportEvent } from '../events/operator-event.ts'
import type { Deadlines } from '../kit/deadlines.ts'
import type { QueueLevels } from '../queue/queue-levels.ts'
import type { QueueLimits } from '../queue/queue-limits.ts'
import type { WindowBudget } from '../queue/window-budget.ts'
import type { WebhookServices } from './webhook-services.ts'

export interface BotQueueServices {
  readonly clock: Clock
  readonly random: () => number
  readonly limits: QueueLimits
  readonly budget: WindowBudget
  readonly counters: Counters
  readonly webhooks: WebhookServices
  readonly levels: Pick<QueueLevels, 'note'>
  readonly report: ReportEvent
  readonly log?: { debug(details: object, message: string): void }
}

/** The same, with what the cache of the bots adds. */
export interface CachedQueueServices extends BotQueueServices {
  /** Of all waiting polls. */
  readonly deadlines: Deadlines
}
