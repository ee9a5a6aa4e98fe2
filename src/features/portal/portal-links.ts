/**
 * The links of the owner's page, which a platform makes for the owner of a bot (protocol.md §9). They are in the record of their
 * bot, so the owner of its shard alone makes, checks and ends them, and a change is in effect when it is on disk.
 *
 *   make --> valid --ttl is over, revoked, or the bot removed--> refused, and what it had open ends
 *
 * A wrong secret is refused as a wrong token is with `--foreign-tokens` (open-with-secret.ts).
 */
import { randomBytes, timingSafeEqual } from 'node:crypto'
import type { Clock, Timer } from '../../kit/clock.ts'
import { PostboteError } from '../../kit/errors.ts'
import type {
  BotRecord,
  ChangeBotRecord,
  StoredPortalLink,
} from '../../shard/records/bot-record.ts'
import { openWithSecret, type StoredBots } from '../../admission/open-with-secret.ts'
import { newPortalSecret, type PortalSecret, portalSecretText } from '../../api/portal-secret.ts'
import { secretHash } from '../../api/token.ts'

/** A bot in memory, as far as links are concerned. */
interface LinkedBot {
  readonly record: BotRecord
  readonly isRemoved: boolean
  lastUsedMs: number
}

/** The bots of the worker, as `BotCache` has them. */
interface LinkedBots extends StoredBots {
  loaded(botId: number): LinkedBot | undefined
  find(botId: number): LinkedBot | undefined | Promise<LinkedBot | undefined>
}

/** What a new link is to be. */
export type WantedLink = Pick<StoredPortalLink, 'can' | 'origin'> & { readonly ttlS: number }

/** A new link with its secret, which is returned only here. */
export interface IssuedLink {
  readonly link: StoredPortalLink
  readonly secretText: string
}

interface Watcher {
  readonly linkId: string
  readonly onEnd: () => void
  timer: Timer | undefined
}

/**
 * A bot has at most this many links that have not ended. Chosen: a platform makes one each time its customer opens the page, for
 * minutes; each takes some 200 bytes of the record that is read with the bot.
 */
export const portalLinksMax = 20
const linkIdBytes = 8

export class PortalLinks {
  readonly #clock: Clock
  readonly #bots: LinkedBots
  readonly #changeRecord: ChangeBotRecord
  /** What is open, by the bots. */
  readonly #watchers = new Map<number, Set<Watcher>>()

  constructor(clock: Clock, bots: LinkedBots, changeRecord: ChangeBotRecord) {
    this.#clock = clock
    this.#bots = bots
    this.#changeRecord = changeRecord
  }

  /** Makes a link. Throws TOO_MANY_LINKS. */
  async make(botId: number, { can, origin, ttlS }: WantedLink): Promise<IssuedLink> {
    const secret = newPortalSecret(randomBytes)
    const { link } = await this.#changeRecord(botId, (record) => {
      const nowMs = this.#nowMs(botId)
      const links = currentLinks(record, nowMs)
      if (links.length >= portalLinksMax)
        throw new PostboteError('TOO_MANY_LINKS', { detail: `it has ${links.length}` })
      const made: StoredPortalLink = {
        id: randomBytes(linkIdBytes).toString('hex'),
        sha256: secretHash(secret).toString('base64url'),
        createdAtMs: nowMs,
        endsAtMs: nowMs + ttlS * 1_000,
        can,
        ...(origin === undefined ? {} : { origin }),
      }
      return { record: withLinks(record, [...links, made]), link: made }
    })
    return { link, secretText: portalSecretText({ botId, secret }) }
  }

  /** Returns the links that have not ended, the oldest first. */
  async list(botId: number): Promise<readonly StoredPortalLink[]> {
    const bot = await this.#bots.find(botId)
    if (bot === undefined || bot.isRemoved)
      throw new PostboteError('UNKNOWN_BOT', { detail: `${botId}` })
    return currentLinks(bot.record, this.#nowMs(botId))
  }

  /**
   * Ends one link, or all. What they have open ends before this resolves.
   *
   * @returns the number of links that have ended
   * @throws UNKNOWN_LINK if the bot has no such link
   */
  async revoke(botId: number, linkId?: string): Promise<number> {
    const { revoked } = await this.#changeRecord(botId, (record) => {
      const links = currentLinks(record, this.#nowMs(botId))
      const left = linkId === undefined ? [] : links.filter(({ id }) => id !== linkId)
      if (linkId !== undefined && left.length === links.length) {
        throw new PostboteError('UNKNOWN_LINK')
      }
      return { record: withLinks(record, left), revoked: links.length - left.length }
    })
    this.endOver(botId)
    return revoked
  }

  /**
   * Finds the link that a secret is for.
   *
   * @throws BAD_LINK, the same for each secret that is not valid for a bot of this owner; STORE_UNAVAILABLE, SHARD_BROKEN
   */
  async authorize({ botId, secret }: PortalSecret): Promise<StoredPortalLink> {
    const found = this.#validOf(botId, secret)
    if (found !== undefined) return found
    return openWithSecret({
      clock: this.#clock,
      bots: this.#bots,
      botId,
      accepts: (record, nowMs) => linkOf(record, { secret, nowMs }) !== undefined,
      open: () => this.#validOf(botId, secret),
      refusedAs: 'BAD_LINK',
    })
  }

  /**
   * Ends something long when its link ends; before this returns if it has ended.
   *
   * @returns a function that stops the watch
   */
  watch(botId: number, linkId: string, onEnd: () => void): () => void {
    const watcher: Watcher = { linkId, onEnd, timer: undefined }
    const watchers = this.#watchers.get(botId) ?? new Set()
    this.#watchers.set(botId, watchers.add(watcher))
    this.#endIfOver(botId, watcher)
    return () => this.#unwatch(botId, watcher)
  }

  /** Ends what was begun with links of a bot that have ended since. */
  endOver(botId: number): void {
    for (const watcher of this.#watchers.get(botId) ?? []) this.#endIfOver(botId, watcher)
  }

  #endIfOver(botId: number, watcher: Watcher): void {
    const bot = this.#bots.loaded(botId)
    const isThere = bot !== undefined && !bot.isRemoved
    const nowMs = isThere ? this.#nowMs(botId) : 0
    const links = isThere ? currentLinks(bot.record, nowMs) : []
    const link = links.find(({ id }) => id === watcher.linkId)
    watcher.timer?.cancel()
    if (link === undefined) {
      this.#unwatch(botId, watcher)
      watcher.onEnd()
      return
    }
    // Looks again before a link ends: a timer cannot be as long as the longest link, and the wall clock may be set.
    const waitMs = Math.min(link.endsAtMs - nowMs, watchAgainMs)
    watcher.timer = this.#clock.after(waitMs, () => this.#endIfOver(botId, watcher))
  }

  #unwatch(botId: number, watcher: Watcher): void {
    watcher.timer?.cancel()
    const watchers = this.#watchers.get(botId)
    if (watchers?.delete(watcher) === true && watchers.size === 0) this.#watchers.delete(botId)
  }

  /** Returns the link of a bot in memory. */
  #validOf(botId: number, secret: string): StoredPortalLink | undefined {
    const bot = this.#bots.loaded(botId)
    if (bot === undefined || bot.isRemoved) return undefined
    const link = linkOf(bot.record, { secret, nowMs: this.#nowMs(botId) })
    if (link !== undefined) bot.lastUsedMs = this.#clock.monotonicMs()
    return link
  }

  /** The time by the clock of the shard, which also ends tokens. */
  #nowMs(botId: number): number {
    return this.#bots.shardOf(botId).clock.nowMs()
  }
}

/** What is open with a link is checked against the wall clock at least this often. */
const watchAgainMs = 5_000

function currentLinks({ portalLinks = [] }: BotRecord, nowMs: number): readonly StoredPortalLink[] {
  return portalLinks.filter(({ endsAtMs }) => nowMs < endsAtMs)
}

/** Without links a record is as it was before the first one. */
function withLinks(
  { portalLinks: _before, ...record }: BotRecord,
  links: readonly StoredPortalLink[],
): BotRecord {
  return links.length === 0 ? record : { ...record, portalLinks: links }
}

function linkOf(
  record: BotRecord | undefined,
  { secret, nowMs }: { readonly secret: string; readonly nowMs: number },
): StoredPortalLink | undefined {
  const hash = secretHash(secret)
  let found: StoredPortalLink | undefined
  for (const link of record?.portalLinks ?? []) {
    const isSame = timingSafeEqual(hash, Buffer.from(link.sha256, 'base64url'))
    if (isSame && nowMs < link.endsAtMs) found = link
  }
  return found
}
