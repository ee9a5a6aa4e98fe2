import type { BotQueue } from '../../bots/bot-queue.ts'
import type { BotService } from '../../bots/bot-service.ts'

interface OfQueue {
  readonly params: { readonly id: number }
  readonly query: { readonly test: boolean }
}

/** Returns the queue that a call is about. Rejects with UNKNOWN_BOT. */
export function queueOf(bots: BotService, { params, query }: OfQueue): Promise<BotQueue> {
  return bots.queueOf(params.id, query.test)
}
