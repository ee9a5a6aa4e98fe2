/** What the operator should know, of the past and as it happens: the events of all bots, shards and workers. */
import { badgeElement, timeElement, updateLink } from '../elements/page-part.ts'
import { type Column, dataTable, emptyState } from '../elements/data-table.ts'
import { cardElement, type Child, element } from '../elements/element.ts'
import { fillField, searchField } from '../elements/fields.ts'
import { formatCount } from '../elements/format.ts'
import { pageCall, type PageInput } from '../frame/page-calls.ts'
import { botHash } from '../frame/page-route.ts'
import type { PageContext, PageView } from '../frame/page-context.ts'
import { serverEvents } from '../frame/server-events.ts'
import { statusLine } from '../elements/messages.ts'
import { waitingFor } from '../elements/waiting.ts'

type EventType = NonNullable<NonNullable<PageInput<'followEvents'>['query']>['type']>

/** How bad each type is, as the style knows it. The compiler knows when one is missing. */
const tones: Readonly<Record<EventType, 'failing' | 'degraded' | 'healthy'>> = {
  'webhook.failing': 'failing',
  'webhook.recovered': 'healthy',
  'webhook.removed': 'failing',
  'bot.degraded': 'degraded',
  'bot.recovered': 'healthy',
  'bot.unpolled': 'degraded',
  'bot.polled': 'healthy',
  'updates.expired': 'degraded',
  'dead_letters.added': 'degraded',
  'queue.high': 'degraded',
  'queue.full': 'failing',
  'shard.poisoned': 'failing',
  'shard.broken': 'failing',
  'shard.damaged': 'failing',
  'worker.restarted': 'degraded',
  'relay.paused': 'degraded',
  'relay.resumed': 'healthy',
  'relay.refused': 'degraded',
  'certificate.refused': 'failing',
  'attempt.delivered': 'healthy',
  'attempt.failed': 'failing',
}
const types = Object.keys(tones).filter((name): name is EventType => name in tones)
/** Chosen: several screens; a longer past is for programs. */
const shownMax = 200
/** So many events are looked through for those of one bot: all that the server keeps. */
const searchedMax = 10_000

const refusedText = 'The server refused to show its events. Trying again…'
const connectedText = 'Live: new events appear at the top.'
/** Events that come within this time are drawn at once: those of the past may be thousands. */
const drawMs = 20
/** Chosen: how long events of the past may take. */
const pastMs = 300

/** The part of an event that the page shows. */
interface ShownEvent {
  readonly id: number | string
  readonly type: EventType
  readonly time: number
  readonly text: string
  readonly bot_id?: number
  readonly username?: string
  /** Of an attempt. */
  readonly update_id?: number
  readonly test?: boolean
  readonly node?: string
}

export function eventsView(context: PageContext): PageView {
  const { atEnd, clock, query, keepQuery } = context
  let events: readonly ShownEvent[] = []
  const { fields, type, bot } = eventFilters(query, () => restart())
  // What is being typed is no filter yet: it would drop events that come meanwhile.
  let wantedBot = bot.value.trim()
  const state = statusLine('faint')
  const none = emptyState({
    title: 'Nothing has happened.',
    text: 'Webhooks that fail or recover, dead letters, full queues and restarts appear here. A terminal shows the same:',
    command: 'postbote events --last 100',
    isHidden: true,
  })
  const waiting = waitingFor()
  const table = dataTable('Events', columnsOf(clock))
  const show = (): void => {
    waiting.done()
    none.hidden = events.length > 0
    table.show(events)
  }
  const showSoon = once(context, show)
  const say = (text: string): void => {
    state.say(text)
    if (text === refusedText) waiting.fail(text, () => stream.restart())
    // Those of the past come at once, if there are any.
    if (text === connectedText) atEnd(clock.after(pastMs, show))
  }
  const add = (data: string): void => {
    const event: ShownEvent = JSON.parse(data)
    if (!isOf(event, wantedBot)) return
    events = [event, ...events].slice(0, shownMax)
    showSoon()
  }
  const chosen = (): EventType | undefined => types.find((each) => each === type.value)
  const stream = serverEvents(context, {
    targetOf() {
      const last = wantedBot === '' ? shownMax : searchedMax
      return pageCall('followEvents', { query: { last, type: chosen() } }).target
    },
    say,
    connectedText,
    refusedText,
    on: {
      ...Object.fromEntries(types.map((each) => [each, add])),
      missed: (data) => state.say(missedText(data)),
    },
    onBegin: () => {
      events = []
    },
  })
  const restart = (): void => {
    wantedBot = bot.value.trim()
    keepQuery({ type: type.value, bot: wantedBot })
    stream.restart()
    show()
  }
  const root = element(
    'div',
    {},
    element('div', { class: 'heading' }, element('h1', {}, 'Events')),
    cardElement(
      'What happened',
      element('div', { class: 'controls' }, ...fields, state.root),
      waiting.root,
      none,
      table.root,
    ),
  )
  return { title: 'Events', root }
}

/** Returns a function whose calls within a moment are one. */
function once({ clock, atEnd }: Pick<PageContext, 'atEnd' | 'clock'>, run: () => void): () => void {
  let cancel: (() => void) | undefined
  atEnd(() => cancel?.())
  return () => {
    cancel ??= clock.after(drawMs, () => {
      cancel = undefined
      run()
    })
  }
}

interface EventFilters {
  readonly fields: readonly HTMLElement[]
  readonly type: HTMLSelectElement
  readonly bot: HTMLInputElement
}

function eventFilters(query: URLSearchParams, onchange: () => void): EventFilters {
  const type = element(
    'select',
    { onchange },
    element('option', { value: '' }, 'All types'),
    ...types.map((each) => element('option', { value: each }, each)),
  )
  fillField(type, query.get('type'))
  const { root, input: bot } = searchField({
    label: 'Bot',
    placeholder: 'Id or username',
    value: query.get('bot'),
    onchange,
  })
  return { fields: [root, element('label', {}, 'Type', type)], type, bot }
}

function missedText(data: string): string {
  const { count }: { readonly count: number } = JSON.parse(data)
  return `${formatCount(count)} events were left out.`
}

function columnsOf(clock: PageContext['clock']): readonly Column<ShownEvent>[] {
  return [
    { title: 'Time', isPlain: true, cell: ({ time }) => timeElement(clock, time) },
    {
      title: 'Event',
      style: 'state',
      isPlain: true,
      cell: (event) => badgeElement(event.type, tones[event.type]),
    },
    { title: 'What happened', isPlain: true, cell: textOf, style: 'wrap' },
    { title: 'Update', cell: updateLinkOf },
    { title: 'Node', cell: ({ node }) => node ?? '–' },
  ]
}

function updateLinkOf({ bot_id: id, test = false, update_id: update }: ShownEvent): Child {
  return id === undefined ? '–' : updateLink({ botId: `${id}`, isTest: test }, update)
}

/** Whether an event is of the bot that is typed, by the beginning of its id or username; nothing is any bot. */
function isOf({ bot_id: id, username = '' }: ShownEvent, typed: string): boolean {
  const wanted = typed.replace(/^@/, '').toLowerCase()
  if (wanted === '') return true
  return (
    id !== undefined && [`${id}`, username.toLowerCase()].some((each) => each.startsWith(wanted))
  )
}

/** The sentence of an event, in which the bot, which it names once, leads to its page. */
function textOf(event: ShownEvent): readonly Child[] {
  const { text, bot_id: id, username, test = false } = event
  if (id === undefined) return [text]
  const named = `bot ${id}${username === undefined ? '' : ` (@${username})`}`
  const at = text.toLowerCase().indexOf(named.toLowerCase())
  const href = botHash({ botId: `${id}`, isTest: test })
  const name = username === undefined ? `bot ${id}` : `@${username}`
  const link = element('a', { href, class: 'row-link', title: `bot ${id}` }, name)
  if (at < 0) return [text, ' ', link]
  return [text.slice(0, at), link, text.slice(at + named.length)]
}
