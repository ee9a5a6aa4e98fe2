/**
 * The replays of a queue: jobs that push updates again which have left it. One begins with a count of what the filters select, goes
 * on by itself, and can be watched and cancelled, from any browser.
 */
import { actLabels } from '../frame/act-labels.ts'
import { badgeElement, type PagePart, timeElement } from '../elements/page-part.ts'
import { type BotQueueName, ofQueue } from '../frame/page-calls.ts'
import { buttonElement, cardElement, element, setElementText } from '../elements/element.ts'
import { errorText } from '../elements/messages.ts'
import { formatBytes, formatCount, formatExact, formatUpdates } from '../elements/format.ts'
import type { PageContext } from '../frame/page-context.ts'
import { replayProgress } from './replay-progress.ts'
import type { ReplayShape } from '../frame/shapes.ts'
import type { UpdateSelection } from '../updates/update-filters.ts'

/** While a job runs, and while none does. */
const pauseMs = 2_000
const rateUsual = 1_000
/** As in the limits of the server, from which this program imports nothing. */
const rateMax = 10_000
/** How good each state is, as the style knows it. The compiler knows when one is missing. */
const tones: Readonly<Record<ReplayShape['state'], string>> = {
  running: 'polling',
  paused: 'degraded',
  done: 'healthy',
  cancelled: 'idle',
}

export interface ReplaysPanel {
  /** Hidden while there is no job. */
  readonly root: HTMLElement
  /** Asks how many updates are selected, and starts a job if the reader wants that. Returns what is wrong, or nothing. */
  readonly start: (selection: UpdateSelection) => Promise<string>
}

export function replaysPanel(context: PageContext, queue: BotQueueName): ReplaysPanel {
  const { api, poll } = context
  const list = element('ul', { class: 'jobs' })
  const root = cardElement('Delivered again', list)
  root.hidden = true
  const rows = new Map<number, PagePart<ReplayShape>>()
  const hurry = poll(pauseMs, async () => {
    const { replays } = await api.call('listReplays', ofQueue(queue, {}))
    root.hidden = replays.length === 0
    for (const replay of replays) {
      const row = rows.get(replay.job_id) ?? jobRow(context, queue, () => hurry())
      rows.set(replay.job_id, row)
      row.show(replay)
    }
    const shown = replays.flatMap(({ job_id: id }) => rows.get(id)?.root ?? [])
    if (shown.length !== list.childElementCount || shown[0] !== list.firstElementChild)
      list.replaceChildren(...shown)
  })
  const unsure: Unsure = { order: undefined, key: '' }
  const start = async (selection: UpdateSelection): Promise<string> => {
    const problem = await startReplay(context, queue, { selection, unsure })
    hurry()
    return problem
  }
  return { root, start }
}

/** An order that may have been taken. */
interface Unsure {
  order: string | undefined
  key: string
}

interface Wanted {
  readonly selection: UpdateSelection
  readonly unsure: Unsure
}

async function startReplay(
  { api, ask, clock, toast }: PageContext,
  queue: BotQueueName,
  { selection: { state, user: _user, ...others }, unsure }: Wanted,
): Promise<string> {
  if (state === 'pending') return 'What is pending is delivered anyway. Choose another state.'
  const selection = { ...others, state }
  const all = ofQueue(queue, {})
  const counted = await api.call('startReplay', {
    ...all,
    body: { ...selection, rate: rateUsual, dry_run: true },
  })
  if (!('count' in counted)) return ''
  const { count, bytes, is_complete: isComplete } = counted
  if (count === 0) return 'No update that is kept matches, so there is nothing to deliver again.'
  const updates = formatUpdates(count, isComplete)
  const bounds = { min: 1, max: rateMax, required: true }
  const rate = element('input', {
    type: 'number',
    ...bounds,
    autocomplete: 'off',
    value: rateUsual,
  })
  const isWanted = await ask({
    title: `Deliver ${updates} again?`,
    text: `They have ${formatBytes(bytes)}. Each is delivered again with a new id, after everything that is pending, and the order of each key stays.`,
    action: `Deliver ${updates} again`,
    fields: element('label', {}, 'Updates per second, at most', rate),
  })
  if (!isWanted) return ''
  const order = { ...selection, rate: Number(rate.value), dry_run: false }
  // What got no response may have begun: the same key starts no second job.
  const wanted = JSON.stringify(order)
  if (unsure.order !== wanted)
    Object.assign(unsure, { order: wanted, key: `page ${clock.nowMs()}` })
  await api.call('startReplay', { ...all, body: { ...order, idempotency_key: unsure.key } })
  unsure.order = undefined
  toast(`${updates} ${count === 1 ? 'is' : 'are'} being delivered again.`)
  return ''
}

function jobRow(
  { api, ask, clock, may, toast }: PageContext,
  queue: BotQueueName,
  onActed: () => void,
): PagePart<ReplayShape> {
  let shown: ReplayShape | undefined
  const state = element('div')
  const what = element('div', { class: 'what' })
  const bar = element('progress', { max: 1 })
  const figures = element('div', { class: 'faint' })
  const cancel = async (): Promise<void> => {
    if (shown === undefined) return
    const { job_id: id, total, replayed } = shown
    const rest = total === null ? 'The other updates' : `${formatCount(total - replayed)} updates`
    const isWanted = await ask({
      title: `Cancel job ${id}?`,
      text: `${rest} are not delivered again. What was pushed stays.`,
      action: 'Cancel the job',
      isDanger: true,
    })
    if (!isWanted) return
    await api.call('cancelReplay', { ...ofQueue(queue, {}), job_id: id })
    toast(`Job ${id} is cancelled.`)
    onActed()
  }
  const button = buttonElement(
    actLabels.cancelReplay,
    () => void cancel().catch((error: unknown) => toast(errorText(error))),
    { style: 'danger small' },
  )
  const show = (replay: ReplayShape): void => {
    const isSame = JSON.stringify(replay) === JSON.stringify(shown)
    shown = replay
    if (isSame) return
    const { share, text } = replayProgress(replay)
    const isRunning = replay.state === 'running' || replay.state === 'paused'
    state.replaceChildren(badgeElement(replay.state, tones[replay.state]))
    what.replaceChildren(filterText(replay), ', started ', timeElement(clock, replay.started))
    bar.hidden = share === undefined
    bar.value = share ?? 0
    bar.setAttribute('aria-label', `Job ${replay.job_id}`)
    setElementText(figures, text)
    button.setAttribute('aria-label', `Cancel job ${replay.job_id}`)
    button.hidden = !isRunning || !may('replay')
  }
  const root = element(
    'li',
    {},
    state,
    element('div', { class: 'progress' }, what, bar, figures),
    button,
  )
  return { root, show }
}

/** For example `Updates of chat.id=42 (expired, any type), pushed until …`. */
function filterText({ filter }: ReplayShape): string {
  const { state, type, ordering_key: key, since, until } = filter
  const kind = `${state ?? 'any state'}, ${type ?? 'any type'}`
  const from = since === null ? '' : ` from ${formatExact(since)}`
  const whose = key === null ? '' : ` of ${key}`
  return `Updates${whose} (${kind}), pushed${from} until ${formatExact(until)}`
}
