/** The dead letters of a queue: shown with their payload, delivered again, or dropped, one by one or all. */
import { actLabels } from '../frame/act-labels.ts'
import { updateIn } from '../../api/update-in.ts'
import { type BotQueueName, ofQueue, type PageInput } from '../frame/page-calls.ts'
import type { Question } from '../elements/confirm-dialog.ts'
import { type Column, dataTable, emptyState } from '../elements/data-table.ts'
import {
  buttonElement,
  buttonsElement,
  cardElement,
  type Child,
  element,
} from '../elements/element.ts'
import { formatBytes, formatCount } from '../elements/format.ts'
import type { PageContext } from '../frame/page-context.ts'
import { botHash } from '../frame/page-route.ts'
import { type Message, statusLine } from '../elements/messages.ts'
import type { DeadGroupShape, DeadLetterShape, ResultShape } from '../frame/shapes.ts'
import { readableUpdate } from '../updates/readable-update.ts'
import {
  type DeadLetterGroups,
  deadLetterGroups,
  type DeadLetterGroupsOptions,
  lettersText,
  reasonText,
} from '../updates/dead-letter-groups.ts'
import { excerptColumns } from '../updates/excerpt-columns.ts'
import { waitingFor } from '../elements/waiting.ts'
import { timeElement, updateLink } from '../elements/page-part.ts'

/** Chosen: fits on two screens; the next ones follow on request. */
const perPage = 50
const pauseMs = 5_000

export function deadLettersPanel(context: PageContext, queue: BotQueueName): HTMLElement {
  const { api, ask, clock, may, poll, toast } = context
  const only = groupFilter(context, () => turn(0))
  const acts = deadLetterActs(context, queue)
  /** The list begins above this id. */
  let after = 0
  let lastId = 0
  let total = 0
  const count = statusLine('faint')
  const none = noLetters()
  const waiting = waitingFor()
  const payload = element('pre', { tabindex: 0, 'aria-label': 'Payload', hidden: true })
  const [first, next] = pageButtons(
    () => turn(0),
    () => turn(lastId),
  )
  const buttonsOf = letterButtons({ acts, run, may, show: (id) => count.run(() => show(id)) })
  const actions = { title: 'Actions', isPlain: true, cell: buttonsOf, style: 'actions' }
  const table = dataTable('Dead letters', [...columnsOf(clock, queue), actions])
  /** What is of use only if there are dead letters. */
  const ofAll = allButtons({ acts, run, totalOf: () => total, may, queue })
  const buttons = buttonsElement(first, next, ...ofAll)
  const controls = element('div', { class: 'controls', hidden: true }, count.root, buttons)

  async function refresh(): Promise<string> {
    const input = ofQueue(queue, { limit: perPage, after, excerpt: true, ...only.chosen() })
    const { dead_letters: letters, total: now } = await api.call('listDeadLetters', input)
    // What is above the list must not appear after it.
    await groups.ready
    total = now
    waiting.done()
    cards.hidden = false
    none.hidden = total > 0
    controls.hidden = total === 0
    payload.hidden ||= total === 0
    first.hidden = after === 0
    next.hidden = letters.length < perPage
    lastId = letters.at(-1)?.update_id ?? 0
    table.show(letters)
    return total === 0 ? '' : lettersText(total)
  }

  function turn(to: number): void {
    after = to
    hurry()
  }

  /** Acts, if the reader answers the question with yes, and says what was done. */
  function run(act: () => Promise<Message>, question?: Question): void {
    count.run(async () => {
      if (question === undefined || (await ask(question))) toast(await act())
      groups.hurry()
      return refresh()
    })
  }

  async function show(id: number): Promise<string> {
    payload.textContent = await acts.payloadOf(id)
    payload.hidden = false
    payload.focus()
    return refresh()
  }

  const groups = groupsCard(context, queue, { onShow: only.choose, onActed: () => hurry() })
  const list = cardElement('Dead letters', controls, only.root, none, payload, table.root)
  const cards = element('div', { hidden: true }, groups.root, list)
  const hurry = poll(pauseMs, () => refresh().then(count.say), waiting)
  return element('div', {}, waiting.root, cards)
}

/** The reasons of the letters of this queue, if there are any. */
function groupsCard(
  context: PageContext,
  queue: BotQueueName,
  acts: Pick<DeadLetterGroupsOptions<QueueSums>, 'onShow' | 'onActed'>,
): DeadLetterGroups {
  const groups = deadLetterGroups(context, {
    ...acts,
    read: () => context.api.call('sumDeadLetters', ofQueue(queue, {})),
    onRead(sums) {
      // What was delivered again is said here, also if nothing is left.
      root.hidden &&= (sums?.groups.length ?? 0) === 0
    },
  })
  const root = cardElement('By reason', groups.root)
  root.hidden = true
  return { ...groups, root }
}

type QueueSums = ResultShape<'sumDeadLetters'>

type GroupChoice = Pick<NonNullable<PageInput<'listDeadLetters'>['query']>, 'reason' | 'error'>

interface GroupFilter {
  readonly root: HTMLElement
  readonly chosen: () => GroupChoice
  readonly choose: (group: DeadGroupShape) => void
}

/** The letters of one reason, which the address keeps, as a link from the list of all bots has it. */
function groupFilter(
  { query, keepQuery }: Pick<PageContext, 'query' | 'keepQuery'>,
  onChange: () => void,
): GroupFilter {
  const asked = query.get('reason')
  let chosen: GroupChoice =
    asked === 'expired' || asked === 'refused'
      ? { reason: asked, error: query.get('error') ?? '' }
      : {}
  const text = element('span')
  const set = (choice: GroupChoice): void => {
    chosen = choice
    const { reason, error = '' } = choice
    root.hidden = reason === undefined
    if (reason !== undefined) {
      text.textContent = `Only: ${reasonText({ reason, error: error === '' ? null : error })}`
    }
  }
  const change = (choice: GroupChoice): void => {
    set(choice)
    const { reason = '', error = '' } = choice
    keepQuery({ reason, error })
    onChange()
  }
  const all = buttonElement('All reasons', () => change({}), { style: 'small' })
  const root = element('p', { class: 'controls', hidden: true }, text, all)
  set(chosen)
  return {
    root,
    chosen: () => chosen,
    choose: ({ reason, error }) => change({ reason, error: error ?? '' }),
  }
}

function pageButtons(onFirst: () => void, onNext: () => void): readonly [HTMLElement, HTMLElement] {
  const style = 'quiet'
  return [
    buttonElement('First page', onFirst, { style }),
    buttonElement('Next page', onNext, { style }),
  ]
}

/** The updates have filters, and what these select can be delivered again. */
function someLink(queue: BotQueueName): HTMLElement {
  const href = `${botHash(queue, 'updates')}?state=dead`
  return element('a', { href, class: 'button' }, 'Deliver some again')
}

function noLetters(): HTMLElement {
  return emptyState({
    title: 'No dead letters.',
    text: 'An update that the webhook refuses for good, or that expires before it is delivered, is kept here.',
    isHidden: true,
  })
}

interface DeadLetterActs {
  readonly payloadOf: (id: number) => Promise<string>
  /** Each of these returns what was done. */
  readonly replay: (id: number) => Promise<Message>
  readonly drop: (id: number) => Promise<Message>
  readonly replayAll: () => Promise<Message>
  readonly dropAll: () => Promise<Message>
}

interface LetterButtons extends Pick<AllButtons, 'acts' | 'may'> {
  readonly run: (act: () => Promise<Message>, question?: Question) => void
  readonly show: (id: number) => void
}

function letterButtons({
  acts,
  run,
  may,
  show,
}: LetterButtons): (letter: DeadLetterShape) => HTMLElement {
  return ({ update_id: id }) => {
    const question = { ...dropQuestion(1), title: `Drop dead letter ${id}?` }
    const of = { of: id, style: 'small' }
    const again = buttonElement(actLabels.replayDeadLetter, () => run(() => acts.replay(id)), of)
    const drop = buttonElement(actLabels.dropDeadLetter, () => run(() => acts.drop(id), question), {
      of: id,
      style: 'danger small',
    })
    return buttonsElement(
      buttonElement('Show', () => show(id), of),
      may('replay') ? again : undefined,
      may('manage') ? drop : undefined,
    )
  }
}

interface AllButtons {
  readonly acts: DeadLetterActs
  readonly run: (act: () => Promise<Message>, question: Question) => void
  readonly totalOf: () => number
  readonly may: PageContext['may']
  readonly queue: BotQueueName
}

function allButtons({ acts, run, totalOf, may, queue }: AllButtons): readonly Child[] {
  const replay = (): void => run(acts.replayAll, replayQuestion(totalOf()))
  const drop = (): void => run(acts.dropAll, dropQuestion(totalOf()))
  return [
    may('replay') ? someLink(queue) : undefined,
    may('replay')
      ? buttonElement(actLabels.replayDeadLetters, replay, { style: 'primary' })
      : undefined,
    may('manage') ? buttonElement(actLabels.dropDeadLetters, drop, { style: 'danger' }) : undefined,
  ]
}

function deadLetterActs({ api }: PageContext, queue: BotQueueName): DeadLetterActs {
  const all = ofQueue(queue, {})
  return {
    async payloadOf(id) {
      const { text } = await api.read('getDeadLetter', { ...all, update_id: id })
      return readableUpdate(updateIn(text))
    },
    async replay(id) {
      const replayed = await api.call('replayDeadLetter', { ...all, update_id: id })
      return [`Update ${id} is delivered again as `, updateLink(queue, replayed.update_id), '.']
    },
    async drop(id) {
      await api.call('dropDeadLetter', { ...all, update_id: id })
      return `Dead letter ${id} is dropped.`
    },
    async replayAll() {
      const { replayed, stopped } = await api.call('replayDeadLetters', all)
      const text = `${lettersText(replayed.length)} delivered again.`
      return stopped === undefined ? text : `${text} Stopped: ${stopped.message}`
    },
    async dropAll() {
      const { removed } = await api.call('dropDeadLetters', all)
      return `${lettersText(removed)} dropped.`
    },
  }
}

function columnsOf(
  clock: PageContext['clock'],
  queue: BotQueueName,
): readonly Column<DeadLetterShape>[] {
  return [
    { title: 'Update', cell: ({ update_id: id }) => updateLink(queue, id), isHead: true },
    // First: what does not fit lies below the actions.
    {
      title: 'Why',
      cell: ({ reason, last_error: error }) => reasonText({ reason, error }),
      style: 'wrap',
    },
    { title: 'Type', cell: ({ type }) => type },
    ...excerptColumns,
    { title: 'Died', cell: ({ time }) => timeElement(clock, time), style: 'number' },
    { title: 'Attempts', cell: ({ attempts }) => formatCount(attempts), style: 'number' },
    { title: 'Size', cell: ({ bytes }) => formatBytes(bytes), style: 'number' },
  ]
}

function replayQuestion(total: number): Question {
  return {
    title: `Deliver ${lettersText(total)} again?`,
    text: 'The oldest comes first. Each gets a new id, after everything that is pending.',
    action: actLabels.replayDeadLetters,
  }
}

function dropQuestion(count: number): Question {
  return {
    title: `Drop ${lettersText(count)}?`,
    text: 'What is dropped cannot be restored.',
    action: count === 1 ? 'Drop it' : `Drop all ${formatCount(count)}`,
    isDanger: true,
  }
}
