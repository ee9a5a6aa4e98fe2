/** Dead letters by their reasons: a line for each, which opens to the bots that have them, and delivers them again. */
import { actLabels } from '../frame/act-labels.ts'
import { ifOlder } from '../frame/api-client.ts'
import { badgeElement, timeElement, updateLink } from '../elements/page-part.ts'
import { type Column, dataTable } from '../elements/data-table.ts'
import { buttonElement, buttonsElement, type Child, element } from '../elements/element.ts'
import { formatCount } from '../elements/format.ts'
import { errorText } from '../elements/messages.ts'
import { ofQueue } from '../frame/page-calls.ts'
import type { PageContext } from '../frame/page-context.ts'
import { botHash } from '../frame/page-route.ts'
import type { Waiting } from '../elements/waiting.ts'
import type { DeadGroupShape } from '../frame/shapes.ts'

type GroupQueue = DeadGroupShape['queues'][number]

/** The server reads all dead letters for their reasons. Chosen: a night changes in minutes. */
const pauseMs = 15_000

interface Sums {
  readonly groups: readonly DeadGroupShape[]
}

export interface DeadLetterGroupsOptions<Read extends Sums> {
  readonly read: () => Promise<Read>
  /** Called with what was read; undefined if the server is older than this call. */
  readonly onRead: (sums: Read | undefined) => void
  /** Stands in place of the groups until they are read. */
  readonly waiting?: Waiting
  /** The groups are of one queue, so its bot is not named. The reader wants to see the letters of a group. */
  readonly onShow?: (group: DeadGroupShape) => void
  /** Something was delivered again. */
  readonly onActed: () => void
}

export interface DeadLetterGroups {
  readonly root: HTMLElement
  /** Resolves when they were read, or could not be. */
  readonly ready: Promise<void>
  readonly hurry: () => void
}

/** Makes the table of the groups, which is read again and again. */
export function deadLetterGroups<Read extends Sums>(
  context: PageContext,
  { read, onRead, waiting, onShow, onActed }: DeadLetterGroupsOptions<Read>,
): DeadLetterGroups {
  const { clock, may } = context
  const progress = progressLine()
  const again = (group: DeadGroupShape): Child =>
    buttonElement(
      actLabels.startReplay,
      () => void deliverAgain(context, group, progress).then(acted),
      { of: reasonText(group), style: 'small' },
    )
  const only = (group: DeadGroupShape): Child =>
    onShow &&
    buttonElement('Only these', () => onShow(group), {
      of: reasonText(group),
      style: 'quiet small',
    })
  const columns: readonly (Column<DeadGroupShape> | undefined)[] = [
    { title: 'Reason', isPlain: true, cell: reasonCell, style: 'wrap' },
    { title: 'Dead letters', cell: ({ count }) => formatCount(count), style: 'number' },
    onShow ? undefined : { title: 'Bots', cell: ({ bots }) => formatCount(bots), style: 'number' },
    { title: 'Newest', cell: ({ newest }) => timeElement(clock, newest), style: 'number' },
    { title: 'Oldest', cell: ({ oldest }) => timeElement(clock, oldest), style: 'number' },
    {
      title: 'Actions',
      isPlain: true,
      cell: (group) => buttonsElement(only(group), may('replay') ? again(group) : undefined),
      style: 'actions',
    },
  ]
  const table = dataTable(
    'Dead letters by reason',
    columns.filter((column) => column !== undefined),
    onShow ? {} : { more: { keyOf: reasonText, detailOf: queuesElement } },
  )
  const refresh = async (): Promise<void> => {
    const sums = await read().catch(ifOlder)
    onRead(sums)
    table.show(sums?.groups ?? [])
  }
  let hurry: (() => void) | undefined
  const ready = new Promise<void>((resolve) => {
    hurry = context.poll(pauseMs, () => refresh().finally(resolve), waiting)
  })
  const acted = (): void => {
    hurry?.()
    onActed()
  }
  const root = element('div', {}, progress.root, table.root)
  return { root, ready, hurry: () => hurry?.() }
}

/** For example `refused: 503 Service Unavailable`. */
export function reasonText({ reason, error }: Pick<DeadGroupShape, 'reason' | 'error'>): string {
  return error === null ? reason : `${reason}: ${error}`
}

/** Where the letters of a group are listed. */
function groupHash(queue: GroupQueue, { reason, error }: DeadGroupShape): string {
  const query = new URLSearchParams({ reason, ...(error === null ? {} : { error }) })
  return `${botHash(queueOf(queue), 'dead-letters')}?${query.toString()}`
}

function reasonCell({ reason, error }: DeadGroupShape): readonly Child[] {
  const badge = badgeElement(reason, reason === 'expired' ? 'degraded' : 'failing')
  return [badge, element('span', {}, ` ${error ?? 'no attempt was made or failed'}`)]
}

function queuesElement(group: DeadGroupShape): HTMLElement {
  const items = group.queues.map((queue) => {
    const { bot_id: id, first_name: name, username, test, count, update_id: example } = queue
    return element(
      'li',
      {},
      element('a', { href: groupHash(queue, group) }, name),
      element('span', { class: 'faint' }, ` @${username} · ${id}${test ? ', /test/' : ''} `),
      `${formatCount(count)}, such as update `,
      updateLink(queueOf(queue), example),
    )
  })
  const others = group.bots - new Set(group.queues.map((queue) => queue.bot_id)).size
  const rest =
    others > 0
      ? element('li', { class: 'faint' }, `and ${formatCount(others)} other bots`)
      : undefined
  return element('ul', { class: 'group-bots' }, ...items, rest)
}

interface ProgressLine {
  readonly root: HTMLElement
  readonly show: (done: number, of: number, text: string) => void
}

function progressLine(): ProgressLine {
  const bar = element('progress', { max: 1, 'aria-label': 'Delivered again' })
  const text = element('p', { role: 'status' })
  const root = element('div', { class: 'progress note', hidden: true }, text, bar)
  return {
    root,
    show(done, of, said) {
      root.hidden = false
      bar.hidden = done >= of
      bar.value = of === 0 ? 1 : done / of
      text.textContent = said
    },
  }
}

/** What was delivered again so far. */
interface Delivered {
  bots: number
  updates: number
  /** What each bot has refused. */
  readonly problems: string[]
}

/** Asks, and delivers the letters of a group again, bot by bot. Never rejects. */
async function deliverAgain(
  { api, ask }: Pick<PageContext, 'api' | 'ask'>,
  group: DeadGroupShape,
  { show }: ProgressLine,
): Promise<void> {
  const { queues, reason, error } = group
  const count = queues.reduce((sum, queue) => sum + queue.count, 0)
  if (!(await ask(questionOf(group, count)))) return
  const done: Delivered = { bots: 0, updates: 0, problems: [] }
  for (const [nth, queue] of queues.entries()) {
    show(
      nth,
      queues.length,
      `${botsText(nth)} of ${formatCount(queues.length)}, ${lettersText(done.updates)} delivered again so far …`,
    )
    try {
      const input = ofQueue(queueOf(queue), {})
      const body = { reason, error: error ?? '' }
      const { replayed, stopped } = await api.call('replayDeadLetters', { ...input, body })
      done.updates += replayed.length
      done.bots += replayed.length > 0 ? 1 : 0
      if (stopped !== undefined) done.problems.push(`${queue.first_name}: ${stopped.message}`)
    } catch (problem) {
      done.problems.push(`${queue.first_name}: ${errorText(problem)}`)
    }
  }
  show(1, 1, resultText(done))
}

function questionOf(
  { bots, queues, ...why }: DeadGroupShape,
  count: number,
): Parameters<PageContext['ask']>[0] {
  const named = new Set(queues.map((queue) => queue.bot_id)).size
  const whose =
    named < bots
      ? `Those of the ${formatCount(named)} bots with the most, of ${formatCount(bots)}.`
      : `They are of ${botsText(bots)}.`
  return {
    title: `Deliver ${lettersText(count)} again?`,
    text: `Their reason is "${reasonText(why)}". ${whose} The oldest comes first. Each gets a new id, after everything that is pending.`,
    action: `Deliver ${formatCount(count)} again`,
  }
}

function resultText({ bots, updates, problems }: Delivered): string {
  const [first, ...others] = problems
  const done = `${lettersText(updates)} of ${botsText(bots)} ${updates === 1 ? 'is' : 'are'} delivered again.`
  if (first === undefined) return done
  const more = others.length === 0 ? '' : ` ${botsText(others.length)} more had problems.`
  return `${done} ${first}${/[.!?]$/.test(first) ? '' : '.'}${more}`
}

export function lettersText(total: number): string {
  return total === 1 ? '1 dead letter' : `${formatCount(total)} dead letters`
}

function botsText(count: number): string {
  return count === 1 ? '1 bot' : `${formatCount(count)} bots`
}

function queueOf({ bot_id: id, test }: GroupQueue): { botId: string; isTest: boolean } {
  return { botId: `${id}`, isTest: test }
}
