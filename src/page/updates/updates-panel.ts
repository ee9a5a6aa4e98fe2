/**
 * The updates of a queue: those that wait, those that are kept after they left, and dead letters, with filters, the newest first.
 * One call of the server reads a bounded number of updates, so a page may be short although others follow.
 */
import { badgeElement, timeElement } from '../elements/page-part.ts'
import { type BotQueueName, ofQueue } from '../frame/page-calls.ts'
import { type Column, dataTable, emptyState } from '../elements/data-table.ts'
import { buttonElement, buttonsElement, cardElement, element } from '../elements/element.ts'
import { type Erased, eraseKey } from '../bot/erase-key.ts'
import { formatBytes, formatCount } from '../elements/format.ts'
import type { PageContext } from '../frame/page-context.ts'
import { botHash } from '../frame/page-route.ts'
import { replaysPanel } from '../bot/replays-panel.ts'
import type { UpdateShape } from '../frame/shapes.ts'
import { statusLine } from '../elements/messages.ts'
import { updateFilters, type UpdateSelection, updateTones } from './update-filters.ts'
import { waitingFor } from '../elements/waiting.ts'
import { excerptColumns } from './excerpt-columns.ts'

const pauseMs = 5_000
/** Chosen: fits on two screens; the next ones follow on request. */
const perPage = 50
/** Above all ids. */
const beforeAll = 2 ** 31 - 1

export function updatesPanel(context: PageContext, queue: BotQueueName): HTMLElement {
  const { api, clock, may, poll, keepQuery } = context
  /** The page begins below this id. */
  let before = beforeAll
  let next: number | null = null
  const result = statusLine('faint')
  const none = noUpdates(may('read'))
  const waiting = waitingFor()
  const filters = updateFilters(context, () => ask())
  const newest = buttonElement('Newest', () => turn(beforeAll), { style: 'quiet' })
  const older = buttonElement('Older', () => turn(next ?? beforeAll), { style: 'quiet' })
  const replays = replaysPanel(context, queue)
  const replay = buttonElement('Deliver these again', () =>
    result.run(() => replays.start(filters.selection() ?? {})),
  )
  const erase = buttonElement(
    'Erase these',
    () => result.run(() => eraseKey(context, queue, erasedBy(filters.selection()))),
    { style: 'danger' },
  )
  const showActs = (): void => {
    const selected = filters.selection()
    const { state, ordering_key: key, user } = selected ?? {}
    // A job of the server selects by keys, and not by whom the updates name.
    const isReplayed = selected !== undefined && state !== 'pending' && user === undefined
    replay.hidden = !may('replay') || !isReplayed
    erase.hidden = !may('manage') || (key === undefined && user === undefined)
  }
  showActs()
  const table = dataTable('Updates', columnsOf(clock, queue))

  async function refresh(): Promise<string> {
    const selected = filters.selection()
    if (selected === undefined) return showNothing()
    const query = { ...selected, limit: perPage, before, excerpt: true }
    const found = await api.call('listUpdates', ofQueue(queue, query))
    next = found.next
    waiting.done()
    none.hidden = found.updates.length > 0 || next !== null
    newest.hidden = before === beforeAll
    older.hidden = next === null
    table.show(found.updates)
    const isShort = found.updates.length < perPage && next !== null
    return isShort ? 'The server has looked at 2,000 updates. Older ones may match, too.' : ''
  }

  /** The field says why. */
  function showNothing(): string {
    waiting.done()
    none.hidden = true
    newest.hidden = true
    older.hidden = true
    table.show([])
    return ''
  }

  function ask(): void {
    keepQuery(filters.address())
    showActs()
    turn(beforeAll)
  }

  function turn(to: number): void {
    before = to
    hurry()
  }

  const hurry = poll(pauseMs, () => refresh().then(result.say), waiting)
  const buttons = buttonsElement(newest, older, replay, erase)
  const controls = element('div', { class: 'controls' }, ...filters.fields, buttons)
  const list = cardElement('Updates', controls, result.root, waiting.root, none, table.root)
  return element('div', {}, replays.root, list)
}

function erasedBy({ user, ordering_key: key = '' }: UpdateSelection = {}): Erased {
  return user === undefined ? { ordering_key: key } : { user }
}

/** @param hasKey - whether the reader has a key, and not just a link */
function noUpdates(hasKey: boolean): HTMLElement {
  const when =
    'Updates that wait are always here; those that have left only if the server keeps them.'
  const how = ' To keep a day, set it under Settings, or for all bots:'
  return emptyState({
    title: 'No such updates.',
    text: hasKey ? `${when}${how}` : when,
    ...(hasKey ? { command: 'postbote serve --retain 1d --retain-bytes 64MiB' } : {}),
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
    ...excerptColumns,
    { title: 'Pushed', cell: ({ accepted }) => timeElement(clock, accepted), style: 'number' },
    { title: 'Left', cell: ({ left }) => timeElement(clock, left), style: 'number' },
    { title: 'Attempts', cell: ({ attempts }) => formatCount(attempts), style: 'number wide' },
    { title: 'Size', cell: ({ bytes }) => formatBytes(bytes), style: 'number wide' },
  ]
}
