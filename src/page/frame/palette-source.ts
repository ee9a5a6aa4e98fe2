/**
 * What the search of the page finds: bots, pages, and on the page of a bot what can be done with that. Bots are found by the server;
 * what a key may not see or do is not offered.
 */
import { actLabels } from './act-labels.ts'
import { focusQuery } from './focus-query.ts'
import { errorText } from '../elements/messages.ts'
import { formatCount, shardsText } from '../elements/format.ts'
import { actOnQueue, type QueueAction, stateOf } from '../elements/state-head.ts'
import type { BotQueueName } from './page-calls.ts'
import type { PageContext } from './page-context.ts'
import { botHash, type BotTab, botTabs, type PageRoute } from './page-route.ts'
import { hasWords, rankOf, searchOf } from './search-of.ts'
import type { PaletteAnswer, PaletteEntry, PaletteSource } from './palette.ts'
import type { BotListShape, BotShape, ListedBotShape } from './shapes.ts'

/** Chosen: all are seen without scrolling. The last entry leads to the others. */
const botsShownMax = 8
/** Chosen: the best of so many are shown, whichever ids they have. The server reads their names from its disk. */
const botsAskedMax = 100

/** A page that the reader may see. */
export interface OfferedPage {
  readonly title: string
  readonly href: string
}

/** Makes the source for the view that is shown. */
export function paletteSource(
  context: PageContext,
  route: PageRoute,
  pages: readonly OfferedPage[],
): PaletteSource {
  const goTo = pages.map(({ title, href }) => linkEntry(title, href))
  const ofBot = route.page === 'bot' ? botCommands(context, route.queue) : undefined
  const known = (text: string): readonly PaletteEntry[] => [
    ...updateEntries(route, text),
    ...[...(ofBot?.known() ?? []), ...goTo]
      .filter(({ kind, label }) => hasWords(`${kind} ${label}`, text))
      .toSorted((a, b) => Number(beginsWith(b, text)) - Number(beginsWith(a, text))),
  ]
  const ask = async (text: string): Promise<PaletteAnswer> => {
    const search = searchOf(text)
    const [found] = await Promise.all([findBots(context, search), ofBot?.read()])
    const entries = [...found.entries, ...known(text)]
    const isNothing = entries.length === 0 && found.note === ''
    return { entries, note: isNothing ? nothingText(text.trim()) : found.note }
  }
  return { ask, known }
}

function beginsWith({ label }: PaletteEntry, text: string): boolean {
  return label.toLowerCase().startsWith(text.trim().toLowerCase())
}

/** On the page of a bot, a number may be the id of an update of it. */
function updateEntries(route: PageRoute, text: string): readonly PaletteEntry[] {
  if (route.page !== 'bot' || !/^[1-9]\d{0,9}$/.test(text.trim())) return []
  const id = Number(text)
  return [linkEntry(`Update ${id} of this bot`, botHash(route.queue, 'updates', id))]
}

async function findBots({ api }: PageContext, search: string): Promise<PaletteAnswer> {
  if (search === '') return { entries: [], note: '' }
  try {
    const query = { search, details: true, limit: botsAskedMax }
    const list = await api.call('listBots', { query }, { isAside: true })
    return foundIn(list, search)
  } catch (error) {
    return { entries: [], note: errorText(error) }
  }
}

function foundIn(
  { bots, missing_shards: missing = [] }: BotListShape,
  search: string,
): PaletteAnswer {
  const best = bots
    .map((bot) => ({ bot, rank: rankOf(bot, search) }))
    .toSorted((a, b) => a.rank - b.rank)
    .slice(0, botsShownMax)
    .map(({ bot }) => botEntry(bot))
  const all = `#/?${new URLSearchParams({ search }).toString()}`
  const count = `${formatCount(bots.length)}${bots.length === botsAskedMax ? ' or more' : ''}`
  const rest = bots.length > best.length ? [linkEntry(`Show all ${count} bots`, all)] : []
  const lack = missing.length === 0 ? '' : ` The bots of ${shardsText(missing)} are missing.`
  return { entries: [...best, ...rest], note: `${countText(bots.length, count)}${lack}`.trim() }
}

function countText(found: number, count: string): string {
  if (found === 0) return ''
  return found === 1 ? '1 bot.' : `${count} bots.`
}

/** Chosen: what fits into a line of a phone beside the words. */
const quotedMax = 24

/** The text is of any script, so its direction ends with it. */
function nothingText(text: string): string {
  const letters = Array.from(text)
  const quoted = letters.length > quotedMax ? `${letters.slice(0, quotedMax).join('')}…` : text
  return `Nothing matches “\u2068${quoted}\u2069”.`
}

function botEntry(bot: ListedBotShape): PaletteEntry {
  const { bot_id: id, username, first_name: label, webhook_host: host } = bot
  const href = botHash({ botId: `${id}`, isTest: false })
  const note = [`${id}`, `@${username}`, ...(typeof host === 'string' ? [host] : [])].join(' · ')
  const state = bot.paused === true ? 'paused' : (bot.health ?? bot.mode)
  const act = (): void => goToHash(href)
  return { label, note, kind: state ?? '', isState: state !== null, act }
}

interface BotCommands {
  /** Learns how the bot is. */
  readonly read: () => Promise<void>
  readonly known: () => readonly PaletteEntry[]
}

function botCommands(context: PageContext, queue: BotQueueName): BotCommands {
  let bot: BotShape | undefined
  let hasRead = false
  return {
    async read() {
      if (hasRead) return
      hasRead = true
      const input = { id: queue.botId }
      bot = await context.api
        .call('getBot', input, { isAside: true })
        .catch((): undefined => undefined)
    },
    known: () => (bot === undefined ? [] : commandsOf(context, queue, bot)),
  }
}

function commandsOf(
  context: PageContext,
  queue: BotQueueName,
  bot: BotShape,
): readonly PaletteEntry[] {
  const { mode, paused, parked_keys: parked } = stateOf(bot, queue)
  const note = `${bot.first_name} @${bot.username}${queue.isTest ? ', /test/ queue' : ''}`
  const act = (action: Exclude<QueueAction, object>): PaletteEntry => ({
    label: actLabels[action],
    note,
    kind: 'Do',
    act: () => void actOnQueue(context, queue, action),
  })
  const tab = (label: string, name: BotTab, focus = ''): PaletteEntry => ({
    ...linkEntry(label, `${botHash(queue, name)}${focus}`),
    note,
  })
  const isWebhook = mode === 'webhook'
  const other = botHash({ ...queue, isTest: !queue.isTest })
  const wanted: readonly (readonly [PaletteEntry, boolean])[] = [
    [act('resumeBot'), paused && context.may('manage')],
    [act('pauseBot'), isWebhook && !paused && context.may('manage')],
    [act('retryBot'), parked > 0 && !paused && context.may('manage')],
    [tab(`${actLabels.pushUpdate}…`, 'try', focusQuery('push')), context.may('push')],
    [
      tab(`${actLabels.checkWebhook}…`, 'try', focusQuery('check')),
      isWebhook && context.may('manage'),
    ],
  ]
  return [
    ...wanted.flatMap(([entry, isOffered]) => (isOffered ? [entry] : [])),
    tab(botTabs.updates, 'updates'),
    tab(botTabs['dead-letters'], 'dead-letters'),
    tab(botTabs.settings, 'settings'),
    { ...linkEntry(queue.isTest ? 'Main queue' : '/test/ queue', other), note },
  ]
}

function linkEntry(label: string, href: string): PaletteEntry {
  return { label, kind: 'Go to', act: () => goToHash(href) }
}

/** The reader may be there already, and have left the field that the address names. */
function goToHash(href: string): void {
  if (location.hash === href) window.dispatchEvent(new HashChangeEvent('hashchange'))
  else location.hash = href
}
