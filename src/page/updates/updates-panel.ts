/**
 * The updates of a queue: those that wait, those that are kept after they left, and dead letters, with filters, the newest first.
 * One call of the server reads a bounded number of updates, so a page may be short although others follow.
 */
import { waitText } from '../../api/wait-text.ts'
import { actLabels } from '../frame/act-labels.ts'
import { badgeElement, type PagePart, timeElement, updateLink } from '../elements/page-part.ts'
import { type BotQueueName, ofQueue } from '../frame/page-calls.ts'
import { type Column, dataTable, emptyState } from '../elements/data-table.ts'
import {
  buttonElement,
  buttonsElement,
  cardElement,
  type Child,
  element,
} from '../elements/element.ts'
import { type Erased, eraseKey } from '../bot/erase-key.ts'
import { formatBytes, formatCount } from '../elements/format.ts'
import type { PageContext } from '../frame/page-context.ts'
import { botHash } from '../frame/page-route.ts'
import { replaysPanel } from '../bot/replays-panel.ts'
import type { UpdateShape } from '../frame/shapes.ts'
import { statusLine } from '../elements/messages.ts'
import {
  type UpdateFilters,
  updateFilters,
  type UpdateSelection,
  updateTones,
} from './update-filters.ts'
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
  const acts = selectionActs(context, filters, {
    replay: () => result.run(() => replays.start(filters.selection() ?? {})),
    erase: () => result.run(() => eraseKey(context, queue, erasedBy(filters.selection()))),
  })
  acts.show()
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
    acts.show()
    turn(beforeAll)
  }

  function turn(to: number): void {
    before = to
    hurry()
  }

  const hurry = poll(pauseMs, () => refresh().then(result.say), waiting)
  const buttons = buttonsElement(newest, older, ...acts.buttons)
  const controls = element('div', { class: 'controls' }, ...filters.fields, buttons)
  const list = cardElement(
    'Updates',
    controls,
    acts.offer,
    result.root,
    waiting.root,
    none,
    table.root,
  )
  return element('div', {}, replays.root, list)
}

interface SelectionActs {
  readonly buttons: readonly HTMLElement[]
  readonly offer: HTMLElement
  /** Call this when the filters select others. */
  readonly show: () => void
}

/** What is done with all updates that the filters select. */
function selectionActs(
  { may }: PageContext,
  filters: UpdateFilters,
  act: { readonly replay: () => void; readonly erase: () => void },
): SelectionActs {
  const replay = buttonElement(actLabels.startReplay, act.replay)
  const erase = buttonElement('Erase these', act.erase, { style: 'danger' })
  const byKey = keyOffer((key) => {
    filters.whose.value = key
    filters.whose.dispatchEvent(new Event('change'))
  })
  const show = (): void => {
    const selected = filters.selection()
    const { state, ordering_key: key, user } = selected ?? {}
    const mayReplay = may('replay') && selected !== undefined && state !== 'pending'
    // A job of the server selects by keys, and not by whom the updates name.
    replay.hidden = !mayReplay || user !== undefined
    byKey.show(mayReplay ? user : undefined)
    erase.hidden = !may('manage') || (key === undefined && user === undefined)
  }
  return { buttons: [replay, erase], offer: byKey.root, show }
}

/** A replay selects by ordering keys. That of a chat, which most updates have, is offered in place of its id. */
function keyOffer(choose: (key: string) => void): PagePart<string | undefined> {
  const root = element('p', { class: 'faint lead', hidden: true })
  const show = (id: string | undefined): void => {
    root.hidden = id === undefined
    if (id === undefined) return
    const key = `chat.id=${id}`
    root.replaceChildren(
      'Only updates of one ordering key can be delivered again together. ',
      buttonElement(`Choose ${key}`, () => choose(key), { style: 'small' }),
    )
  }
  return { root, show }
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

/** Behind which update; of one that comes first and has failed, that it is tried again. */
function waitCell(queue: BotQueueName, update: UpdateShape): Child | readonly Child[] {
  const wait = waitText(update)
  if (wait === undefined) return '–'
  return wait.behind === undefined
    ? 'to be tried again'
    : ['behind ', updateLink(queue, wait.behind)]
}

function waitHint(update: UpdateShape): string {
  const { before = '', behind = '', after = '' } = waitText(update) ?? {}
  return `${before}${behind}${after}`
}

function columnsOf(
  clock: PageContext['clock'],
  queue: BotQueueName,
): readonly Column<UpdateShape>[] {
  const linkOf = ({ update_id: id }: UpdateShape): HTMLElement =>
    element('a', { href: botHash(queue, 'updates', id), class: 'row-link' }, `${id}`)
  return [
    { title: 'Update', cell: linkOf },
    {
      title: 'State',
      style: 'state',
      isPlain: true,
      cell: ({ state }) => badgeElement(state, updateTones[state]),
    },
    { title: 'Type', cell: ({ type }) => type },
    ...excerptColumns,
    {
      title: 'Waits',
      cell: (update) => waitCell(queue, update),
      hint: (update) => waitHint(update),
    },
    { title: 'Pushed', cell: ({ accepted }) => timeElement(clock, accepted), style: 'number' },
    { title: 'Left', cell: ({ left }) => timeElement(clock, left), style: 'number' },
    { title: 'Attempts', cell: ({ attempts }) => formatCount(attempts), style: 'number' },
    { title: 'Size', cell: ({ bytes }) => formatBytes(bytes), style: 'number' },
  ]
}
