/**
 * The part of the address after `#`, which names what the page shows. Pure.
 *
 *     #/                          all bots; its filter and its order are in a query
 *     #/register                  the form that registers a bot
 *     #/bots/4711                 one bot, and with /test its /test/ queue
 *     #/bots/4711/test/settings   one of its tabs
 *     #/bots/4711/updates/29       one update
 *     #/events, #/dead-letters, #/nodes, #/keys, #/audit
 */
import type { BotQueueName } from './page-calls.ts'

/** The parts of the page of a bot, with their titles. */
export const botTabs = {
  activity: 'Activity',
  updates: 'Updates',
  'dead-letters': 'Dead letters',
  try: 'Try',
  settings: 'Settings',
} as const

export type BotTab = keyof typeof botTabs

const plainPages = ['register', 'events', 'dead-letters', 'nodes', 'keys', 'audit'] as const

/** What an address names. */
export type PageRoute =
  | { readonly page: 'bots' | 'unknown' | (typeof plainPages)[number] }
  | {
      readonly page: 'bot'
      readonly queue: BotQueueName
      readonly tab: BotTab
      /** Of the tab of updates: the one that is shown. */
      readonly updateId?: number | undefined
    }

/** Returns what an address names. */
export function routeOf(hash: string): PageRoute {
  const [path = ''] = hash.replace(/^#\/?/, '').split('?')
  if (path === '') return { page: 'bots' }
  const plain = plainPages.find((page) => page === path)
  if (plain !== undefined) return { page: plain }
  const [, botId, test, rest, update] =
    /^bots\/(\d{1,16})(\/test)?(?:\/([a-z-]+)(?:\/(\d{1,10}))?)?$/.exec(path) ?? []
  if (botId === undefined) return { page: 'unknown' }
  const tab = rest === undefined ? 'activity' : tabOf(rest)
  if (tab === undefined || (update !== undefined && tab !== 'updates')) return { page: 'unknown' }
  const queue = { botId, isTest: test !== undefined }
  return { page: 'bot', queue, tab, updateId: update === undefined ? undefined : Number(update) }
}

/** Returns the address of a tab of a bot, or of one update in the tab of updates. */
export function botHash(
  { botId, isTest }: BotQueueName,
  tab: BotTab = 'activity',
  updateId?: number,
): string {
  const path = [botId, isTest ? 'test' : '', tab === 'activity' ? '' : tab, updateId ?? '']
  return `#/bots/${path.filter((part) => part !== '').join('/')}`
}

/** Returns the query of an address. */
export function queryOf(hash: string): URLSearchParams {
  return new URLSearchParams(hash.split('?')[1] ?? '')
}

function tabOf(name: string): BotTab | undefined {
  return Object.keys(botTabs).find((tab): tab is BotTab => tab === name)
}
