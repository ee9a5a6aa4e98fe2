/**
 * The updates of a queue: those that wait, those that are kept after they left, and dead letters, with filters. One call of the
 * server reads a bounded number of updates, so a page may be short although others follow.
 */
import { badgeElement } from './badge.ts'
import { type BotQueueName, ofQueue } from './bot-queue-name.ts'
import { type Column, dataTable } from './data-table.ts'
import { buttonElement, buttonsElement, cardElement, element } from './element.ts'
import { emptyState } from './empty-state.ts'
import { formatBytes, formatCount } from './format.ts'
import type { PageInput } from './page-calls.ts'
import type { PageContext } from './page-context.ts'
import { botHash } from './page-route.ts'
import type { UpdateShape } from './shapes.ts'
import { statusLine } from './status-line.ts'
import { timeElement } from './time-element.ts'

const pauseMs = 5_000
/** Chosen: fits on two screens; the next ones follow on request. */
const perPage = 50

type Query = NonNullable<PageInput<'listUpdates'>['query']>
type UpdateState = NonNullable<Query['state']>

/** How good each state is, as the style knows it. The compiler knows when one is missing. */
export const updateTones: Readonly<Record<UpdateState, string>> = {
  pending: 'polling',
  delivered: 'healthy',
  confirmed: 'healthy',
  dropped: 'idle',
  expired: 'degraded',
  dead: 'failing',
}
const states = Object.keys(updateTones).filter((name): name is UpdateState => name in updateTones)
const spans = [
  ['', 'at any time'],
  ['3600', 'in the last hour'],
  ['86400', 'in the last day'],
  ['604800', 'in the last week'],
] as const

export function updatesPanel(context: PageContext, queue: BotQueueName): HTMLElement {
  const { api, clock, poll, query: asked, keepQuery } = context
  /** The page begins above this id. */
  let after = 0
  let next: number | null = null
  const result = statusLine('faint')
  const none = noUpdates()
  const waiting = element('div', { class: 'skeleton' })
  const state = choice([['', 'Any state'], ...states.map((each) => [each, each] as const)])
  const span = choice(spans)
  const key = element('input', { placeholder: 'chat.id=42', onchange: () => ask() })
  const fields = { state, since: span, ordering_key: key }
  for (const [name, field] of Object.entries(fields)) {
    field.value = asked.get(name) ?? ''
    field.addEventListener('change', () => ask())
  }
  const first = buttonElement('First page', () => turn(0), { style: 'quiet' })
  const more = buttonElement('Next page', () => turn(next ?? 0), { style: 'quiet' })
  const table = dataTable('Updates', columnsOf(clock, queue))

  async function refresh(): Promise<string> {
    const found = await api.call('listUpdates', ofQueue(queue, queryNow()))
    next = found.next
    waiting.hidden = true
    none.hidden = found.updates.length > 0
    first.hidden = after === 0
    more.hidden = next === null
    table.show(found.updates)
    const isShort = found.updates.length < perPage && next !== null
    return isShort ? 'Others may follow on the next page.' : ''
  }

  function queryNow(): Query {
    return {
      limit: perPage,
      after,
      state: states.find((each) => each === state.value),
      ordering_key: key.value || undefined,
      since: span.value === '' ? undefined : Math.floor(clock.nowMs() / 1_000) - Number(span.value),
    }
  }

  function ask(): void {
    keepQuery({ state: state.value, since: span.value, ordering_key: key.value })
    turn(0)
  }

  function turn(to: number): void {
    after = to
    result.run(refresh)
  }

  poll(pauseMs, () => refresh().then(result.say))
  const controls = element(
    'div',
    { class: 'controls' },
    element('label', {}, 'State', state),
    element('label', {}, 'Pushed', span),
    element('label', {}, 'Ordering key', key),
    buttonsElement(first, more),
  )
  return cardElement('Updates', controls, result.root, waiting, none, table.root)
}

function choice(options: readonly (readonly [value: string, text: string])[]): HTMLSelectElement {
  return element(
    'select',
    {},
    ...options.map(([value, text]) => element('option', { value }, text)),
  )
}

function noUpdates(): HTMLElement {
  return emptyState({
    title: 'No such updates.',
    text: 'Updates that wait are always here; those that have left only if the server keeps them. To keep a day, set it under Settings, or for all bots:',
    command: 'postbote --retain 1d --retain-bytes 64M',
    isHidden: true,
  })
}

function columnsOf(
  clock: PageContext['clock'],
  queue: BotQueueName,
): readonly Column<UpdateShape>[] {
  const linkOf = ({ update_id: id }: UpdateShape): HTMLElement =>
    element('a', { href: botHash(queue, 'updates', id), class: 'row-link' }, `${id}`)
  return [
    { title: 'Update', cell: linkOf },
    { title: 'State', cell: ({ state }) => badgeElement(state, updateTones[state]) },
    { title: 'Type', cell: ({ type }) => type, style: 'wide' },
    { title: 'Ordering key', cell: (update) => update.ordering_key, style: 'name wide' },
    { title: 'Pushed', cell: ({ accepted }) => timeElement(clock, accepted), style: 'number' },
    { title: 'Left', cell: ({ left }) => timeElement(clock, left), style: 'number' },
    { title: 'Attempts', cell: ({ attempts }) => formatCount(attempts), style: 'number wide' },
    { title: 'Size', cell: ({ bytes }) => formatBytes(bytes), style: 'number wide' },
  ]
}
