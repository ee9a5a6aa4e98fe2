/** What the bots of a worker tell its modules and ask of them (kit/modules.ts). */
import type { Modules } from '../kit/modules.ts'
import type { Operation } from '../shard/operations.ts'
import type { QueueId } from '../shard/records/record-keys.ts'
import type { Shard } from '../shard/shard.ts'
import type { Lateness, Polls } from '../delivery/attempts/health.ts'
import type { Bot } from './bot.ts'
import type { BotQueue } from './bot-queue.ts'

/** What a module that follows all bots knows of a queue in memory. */
export interface FollowedQueue {
  /** What is known of its getUpdates calls, from before it was loaded, too. */
  readonly polls: Polls
  /** Undefined if its oldest update is not old. */
  readonly lateness: Lateness | undefined
  /** How many updates have waited in each minute of the last hour, the present minute last; undefined where nobody counted. */
  readonly pending: readonly (number | undefined)[]
}

export interface BotHooks {
  /** A bot wants other types than before. */
  typesChanged?(queue: BotQueue): void
  /** Nothing is accepted for a bot any longer, because it is to be removed. */
  removalBegins?(bot: Bot): void
  /**
   * A bot is about to be removed, and nothing is accepted for it. Resolves when nothing of it is in progress, with what is
   * committed with the removal.
   */
  removing?(bot: Bot): Promise<readonly Operation[]>
  /** A bot could not be removed. */
  stays?(bot: Bot): void
  /** Updates of a bot are erased. Rejects if what a module keeps of them cannot be erased. */
  erasing?(bot: Bot): Promise<void>
  /**
   * Returns what is wrong with a queue beside its deliveries and polls, as a clause. It is asked every few seconds for all bots,
   * loaded or not, so a module keeps what it says here, by `served`, `found`, `committed` and `left` of src/shard/hooks.ts.
   */
  troubleOf?(shard: Shard, queue: QueueId): string | undefined
  /** Returns what is known of a queue. The first module that returns it is asked. */
  followed?(queue: BotQueue): FollowedQueue
  /** Finds bots of the worker by their username, in any case. */
  named?(username: string): Promise<readonly number[]>
  /** Returns what `named` costs the event loop, in milliseconds. */
  namedCostMs?(): number
  /** Returns fields for what the private API shows of a bot: those of `ShownFields` in src/features/bots/needs.ts, which are in the row of getBot. */
  botFields?(bot: Bot): object
}

/** Returns what modules say is wrong with a queue. */
export function troublesOf(
  modules: Modules<BotHooks>,
  shard: Shard,
  queue: QueueId,
): readonly string[] {
  return modules.each('troubleOf', shard, queue).filter((trouble) => trouble !== undefined)
}
