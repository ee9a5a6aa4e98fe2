/**
 * The updates of a queue: those that wait, those that are kept after they left, and dead letters, with filters, the newest first.
 * One call of the server reads a bounded number of updates, so a page may be short although others follow.
 */
import { badgeElement, timeElement } from '../elements/page-part.ts'
import { type BotQueueName, ofQueue } from '../frame/page-calls.ts'
import { type Column, dataTable, emptyState } from '../elements/data-table.ts'
import { buttonElement, buttonsElement, cardElement, element } from '../elements/element.ts'
import { eraseKey } from '../bot/erase-key.ts'
import { formatBytes, formatCount } from '../elements/format.ts'
import type { PageContext } from '../frame/page-context.ts'
import { botHash } from '../frame/page-route.ts'
import { replaysPanel } from '../bot/replays-panel.ts'
import type { UpdateShape } from '../frame/shapes.ts'
import { statusLine } from '../elements/messages.ts'
import { updateFilters, updateTones } from './update-filters.ts'

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
  const waiting = element('div', { class: 'skeleton' })
  const filters = updateFilters(context, () => ask())
  const newest = buttonElement('Newest', () => turn(beforeAll), { style: 'quiet' })
  const older = buttonElement('Older', () => turn(next ?? beforeAll), { style: 'quiet' })
  const replays = replaysPanel(context, queue)
  const replay = buttonElement('Replay these', () =>
    result.run(() => replays.start(filters.selection())),
  )
  const erase = buttonElement(
    'Erase this key',
    () =>
      result.run(() =>
        eraseKey(context, queue, { ordering_key: filters.selection().ordering_key ?? '' }),
      ),
    { style: 'danger' },
  )
  const showActs = (): void => {
    const { state, ordering_key: key } = filters.selection()
    replay.hidden = !may('replay') || state === 'pending'
    erase.hidden = !may('manage') || key === undefined
  }
  showActs()
  const table = dataTable('Updates', columnsOf(clock, queue))

  async function refresh(): Promise<string> {
    const query = { ...filters.selection(), limit: perPage, before }
    const found = await api.call('listUpdates', ofQueue(queue, query))
    next = found.next
    waiting.hidden = true
    none.hidden = found.updates.length > 0 || next !== null
    newest.hidden = before === beforeAll
    older.hidden = next === null
    table.show(found.updates)
    const isShort = found.updates.length < perPage && next !== null
    return isShort ? 'The server has looked at 2,000 updates. Older ones may match, too.' : ''
  }

  function ask(): void {
    keepQuery(filters.address())
    showActs()
    turn(beforeAll)
  }

  function turn(to: number): void {
    before = to
    result.run(refresh)
  }

  poll(pauseMs, () => refresh().then(result.say))
  const controls = element(
    'div',
    { class: 'controls' },
    ...filters.fields,
    buttonsElement(newest, older, replay, erase),
  )
  const list = cardElement('Updates', controls, result.root, waiting, none, table.root)
  return element('div', {}, replays.root, list)
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
    { title: 'Ordering key', cell: (update) => update.ordering_key, style: 'name wide' },
    { title: 'Pushed', cell: ({ accepted }) => timeElement(clock, accepted), style: 'number' },
    { title: 'Left', cell: ({ left }) => timeElement(clock, left), style: 'number' },
    { title: 'Attempts', cell: ({ attempts }) => formatCount(attempts), style: 'number wide' },
    { title: 'Size', cell: ({ bytes }) => formatBytes(bytes), style: 'number wide' },
  ]
}
