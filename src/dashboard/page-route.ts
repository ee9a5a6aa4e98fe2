/**
 * The part of the address after `#`, which names what the page shows. Pure.
 *
 *     #/                          all bots; its filter and its order are in a query
 *     #/register                  the form that registers a bot
 *     #/bots/4711                 one bot, and with /test its /test/ queue
 *     #/bots/4711/test/settings   one of its tabs
 *     #/events, #/dead-letters, #/nodes, #/keys
 */
import type { BotQueueName } from './bot-queue-name.ts'

/** The parts of the page of a bot, with their titles. */
export const botTabs = {
  activity: 'Activity',
  'dead-letters': 'Dead letters',
  try: 'Try',
  settings: 'Settings',
} as const

export type BotTab = keyof typeof botTabs

const plainPages = ['register', 'events', 'dead-letters', 'nodes', 'keys'] as const

/** What an address names. */
export type PageRoute =
  | { readonly page: 'bots' | 'unknown' | (typeof plainPages)[number] }
  | { readonly page: 'bot'; readonly queue: BotQueueName; readonly tab: BotTab }

/** Returns what an address names. */
export function routeOf(hash: string): PageRoute {
  const [path = ''] = hash.replace(/^#\/?/, '').split('?')
  if (path === '') return { page: 'bots' }
  const plain = plainPages.find((page) => page === path)
  if (plain !== undefined) return { page: plain }
  const [, botId, test, rest] = /^bots\/(\d{1,16})(\/test)?(?:\/([a-z-]+))?$/.exec(path) ?? []
  if (botId === undefined) return { page: 'unknown' }
  const tab = rest === undefined ? 'activity' : tabOf(rest)
  if (tab === undefined) return { page: 'unknown' }
  return { page: 'bot', queue: { botId, isTest: test !== undefined }, tab }
}

/** Returns the address of a tab of a bot. */
export function botHash({ botId, isTest }: BotQueueName, tab: BotTab = 'activity'): string {
  return `#/bots/${botId}${isTest ? '/test' : ''}${tab === 'activity' ? '' : `/${tab}`}`
}

/** Returns the query of an address. */
export function queryOf(hash: string): URLSearchParams {
  return new URLSearchParams(hash.split('?')[1] ?? '')
}

function tabOf(name: string): BotTab | undefined {
  return Object.keys(botTabs).find((tab): tab is BotTab => tab === name)
}
