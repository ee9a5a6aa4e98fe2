/** The first page: what needs attention, the sums, all bots, and the last day. */
import { attentionPanel } from './attention-panel.ts'
import { botTable } from './bot-table.ts'
import { dayPanel } from '../bot/day-panel.ts'
import { cardElement, element } from '../elements/element.ts'
import type { PageContext, PageView } from '../frame/page-context.ts'
import { serverPanel } from '../server/server-panel.ts'
import type { RightsShape } from '../frame/shapes.ts'
import type { TroubleSums } from './trouble-sums.ts'

/** As many bots as a key may be for. */
const ownBotsMax = 1_000
/** Chosen: each of the bots is looked at for the sums of a key. */
const ownSumsPauseMs = 10_000

export function overviewView(context: PageContext): PageView {
  const bots = botTable(context)
  const attention = attentionPanel(context, bots.select)
  const server = serverPanel(context, {
    onFailing: () => bots.select('failing'),
    onSummary(summary) {
      attention.show(summary)
      if (summary !== undefined) context.tellSums(summary)
    },
    waiting: attention.waiting,
  })
  const register = element('a', { href: '#/register', class: 'button primary' }, 'Register a bot')
  const heading = element(
    'div',
    { class: 'heading' },
    element('h1', {}, 'Overview'),
    context.may('manage') ? register : undefined,
  )
  const [status, ...panels] = server
  const root = element(
    'div',
    {},
    heading,
    status,
    attention.root,
    ...panels,
    bots.root,
    dayPanel(context),
  )
  return { title: 'Overview', root }
}

/** The first page for a key that may not see all bots: its own ones, or what the key may do if it reads none. */
export function rightsView(context: PageContext, rights: RightsShape): PageView {
  const { bots: own, scopes, name } = rights
  const title = `Your key: ${name ?? ''}`
  const heading = element('div', { class: 'heading' }, element('h1', {}, title))
  const scopesText = `Its scopes: ${scopes.join(', ')}.`
  if (own === null || !context.may('read')) {
    const text = element('p', {}, `${scopesText} To see bots, a key needs the scope read.`)
    return { title, root: element('div', {}, heading, cardElement('Rights', text)) }
  }
  const bots = botTable(context)
  const attention = attentionPanel(context, bots.select)
  context.poll(ownSumsPauseMs, async () => attention.show(await sumsOf(context.api)))
  const text = `${scopesText} It is for ${own.length === 1 ? '1 bot' : `${own.length} bots`}.`
  const about = element('p', { class: 'faint lead' }, text)
  return { title, root: element('div', {}, heading, about, attention.root, bots.root) }
}

/** Returns the sums of the bots of a key that may not ask for those of all. A key has no more bots than a list. */
async function sumsOf(api: PageContext['api']): Promise<TroubleSums> {
  const { bots } = await api.call('listBots', { query: { limit: ownBotsMax, details: true } })
  const count = (word: string): number => bots.filter(({ health }) => health === word).length
  return {
    bots: bots.length,
    paused: bots.filter(({ paused }) => paused === true).length,
    dead_letters: bots.reduce((sum, bot) => sum + (bot.dead_letters ?? 0), 0),
    health: {
      failing: count('failing'),
      unpolled: count('unpolled'),
      degraded: count('degraded'),
      behind: count('behind'),
    },
  }
}
