/** The dead letters of a queue: shown with their payload, pushed again, or dropped, one by one or all. */
import { updateIn } from '../../api/update-in.ts'
import { type BotQueueName, ofQueue } from '../frame/page-calls.ts'
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
import type { DeadLetterShape } from '../frame/shapes.ts'
import { readableUpdate } from '../updates/readable-update.ts'
import { timeElement, updateLink } from '../elements/page-part.ts'

/** Chosen: fits on two screens; the next ones follow on request. */
const perPage = 50
const pauseMs = 5_000

export function deadLettersPanel(context: PageContext, queue: BotQueueName): HTMLElement {
  const { api, ask, clock, may, poll, toast } = context
  const acts = deadLetterActs(context, queue)
  /** The list begins above this id. */
  let after = 0
  let lastId = 0
  let total = 0
  const count = statusLine('faint')
  const none = noLetters()
  const waiting = element('div', { class: 'skeleton' })
  const payload = element('pre', { tabindex: 0, 'aria-label': 'Payload', hidden: true })
  const first = buttonElement('First page', () => turn(0), { style: 'quiet' })
  const next = buttonElement('Next page', () => turn(lastId), { style: 'quiet' })
  const actions = { title: 'Actions', cell: buttonsOf, style: 'actions' }
  const table = dataTable('Dead letters', [...columnsOf(clock, queue), actions])
  /** What is of use only if there are dead letters. */
  const controls = element(
    'div',
    { class: 'controls', hidden: true },
    count.root,
    buttonsElement(first, next, ...allButtons({ acts, run, totalOf: () => total, may, queue })),
  )

  async function refresh(): Promise<string> {
    const input = ofQueue(queue, { limit: perPage, after })
    const { dead_letters: letters, total: now } = await api.call('listDeadLetters', input)
    total = now
    waiting.hidden = true
    none.hidden = total > 0
    controls.hidden = total === 0
    payload.hidden ||= total === 0
    first.hidden = after === 0
    next.hidden = letters.length < perPage
    lastId = letters.at(-1)?.update_id ?? 0
    table.show(letters)
    return total === 0 ? '' : countText(total)
  }

  function turn(to: number): void {
    after = to
    count.run(refresh)
  }

  /** Acts, if the reader answers the question with yes, and says what was done. */
  function run(act: () => Promise<Message>, question?: Question): void {
    count.run(async () => {
      if (question === undefined || (await ask(question))) toast(await act())
      return refresh()
    })
  }

  function buttonsOf({ update_id: id }: DeadLetterShape): HTMLElement {
    const show = async (): Promise<string> => {
      payload.textContent = await acts.payloadOf(id)
      payload.hidden = false
      payload.focus()
      return refresh()
    }
    const question = { ...dropQuestion(1), title: `Drop dead letter ${id}?` }
    const of = { of: id, style: 'small' }
    const drop = { of: id, style: 'danger small' }
    const shown = buttonElement('Show', () => count.run(show), of)
    return buttonsElement(
      shown,
      may('replay') ? buttonElement('Replay', () => run(() => acts.replay(id)), of) : undefined,
      may('manage')
        ? buttonElement('Drop', () => run(() => acts.drop(id), question), drop)
        : undefined,
    )
  }

  poll(pauseMs, () => refresh().then(count.say))
  return cardElement('Dead letters', controls, waiting, none, payload, table.root)
}

/** The updates have filters, and replays with them. */
function someLink(queue: BotQueueName): HTMLElement {
  const href = `${botHash(queue, 'updates')}?state=dead`
  return element('a', { href, class: 'button' }, 'Replay some')
}

function noLetters(): HTMLElement {
  return emptyState({
    title: 'No dead letters.',
    text: 'An update that the webhook rejects for good, or that expires before it is delivered, is kept here.',
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
    may('replay') ? buttonElement('Replay all', replay, { style: 'primary' }) : undefined,
    may('manage') ? buttonElement('Drop all', drop, { style: 'danger' }) : undefined,
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
      return [`Update ${id} is pushed again as `, updateLink(queue, replayed.update_id), '.']
    },
    async drop(id) {
      await api.call('dropDeadLetter', { ...all, update_id: id })
      return `Dead letter ${id} is dropped.`
    },
    async replayAll() {
      const { replayed, stopped } = await api.call('replayDeadLetters', all)
      const text = `${countText(replayed.length)} pushed again.`
      return stopped === undefined ? text : `${text} Stopped: ${stopped.message}`
    },
    async dropAll() {
      const { removed } = await api.call('dropDeadLetters', all)
      return `${countText(removed)} dropped.`
    },
  }
}

function columnsOf(
  clock: PageContext['clock'],
  queue: BotQueueName,
): readonly Column<DeadLetterShape>[] {
  return [
    { title: 'Update', cell: ({ update_id: id }) => updateLink(queue, id), isHead: true },
    { title: 'Type', cell: ({ type }) => type, style: 'wide' },
    { title: 'Reason', cell: ({ reason }) => reason, style: 'wide' },
    { title: 'Time', cell: ({ time }) => timeElement(clock, time) },
    { title: 'Attempts', cell: ({ attempts }) => formatCount(attempts), style: 'number wide' },
    { title: 'Size', cell: ({ bytes }) => formatBytes(bytes), style: 'number wide' },
    { title: 'Last error', cell: (letter) => letter.last_error ?? '–', style: 'wrap wide' },
  ]
}

function replayQuestion(total: number): Question {
  return {
    title: `Push ${countText(total)} again?`,
    text: 'The oldest comes first. Each gets a new id, after everything that is pending.',
    action: 'Replay all',
  }
}

function dropQuestion(count: number): Question {
  return {
    title: `Drop ${countText(count)}?`,
    text: 'What is dropped cannot be restored.',
    action: count === 1 ? 'Drop it' : `Drop all ${formatCount(count)}`,
    isDanger: true,
  }
}

function countText(total: number): string {
  return total === 1 ? '1 dead letter' : `${formatCount(total)} dead letters`
}
