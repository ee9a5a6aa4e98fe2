/**
 * Opens a bot with a secret that its record in memory, if there is one, does not have: a token with `--foreign-tokens`, or a link
 * of the owner's page. Anybody can guess such secrets for any bot, so all refusals are alike: the same record is read, the refusal
 * comes after the same time, and the bot of a wrong secret is neither loaded nor marked as used.
 */
import { type Clock, sleep } from '../kit/clock.ts'
import { type ErrorCode, PostboteError } from '../kit/errors.ts'
import type { BotRecord } from '../shard/records/bot-record.ts'
import type { Shard } from '../shard/shard.ts'
import { foreignRefusalMs } from '../api/token.ts'

/** The bots of the worker, as `BotCache` has them. */
export interface StoredBots {
  load(botIds: readonly number[]): Promise<void>
  shardOf(botId: number): Pick<Shard, 'clock' | 'readBot'>
  assertAbsent(botIds: readonly number[]): void
}

export interface SecretOfBot<Opened> {
  readonly clock: Clock
  readonly bots: StoredBots
  readonly botId: number
  /** Returns whether a stored record has the secret; the record is undefined if there is no such bot. */
  accepts(record: BotRecord | undefined, nowMs: number): boolean
  /** Opens the bot, which is in memory now; undefined if the secret has ended meanwhile. */
  open(): Opened | Promise<Opened> | undefined
  /** The code of the refusal. */
  readonly refusedAs: ErrorCode
}

/**
 * Opens a bot with a secret.
 *
 * @throws the code of the refusal; STORE_UNAVAILABLE, SHARD_BROKEN
 */
export async function openWithSecret<Opened>(given: SecretOfBot<Opened>): Promise<Opened> {
  const { clock, bots, botId, refusedAs } = given
  const wait = new AbortController()
  // Before the read, so that its end does not depend on what is read.
  const refusal = sleep(clock, foreignRefusalMs, wait.signal)
  const shard = bots.shardOf(botId)
  const { bot, isDamaged } = await shard.readBot(botId)
  if (isDamaged === true) throw new PostboteError('STORE_UNAVAILABLE')
  if (given.accepts(bot, shard.clock.nowMs())) {
    await bots.load([botId])
    const opened = given.open()
    if (opened !== undefined) {
      wait.abort()
      return opened
    }
  }
  await refusal
  bots.assertAbsent([botId])
  throw new PostboteError(refusedAs)
}
