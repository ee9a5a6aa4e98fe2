/** The dead letters of a queue: shown with their payload, pushed again, or dropped, one by one or all. */
import { type BotQueueName, ofQueue } from './bot-queue-name.ts'
import { type Column, dataTable } from './data-table.ts'
import { buttonElement, cardElement, element } from './element.ts'
import { formatBytes, formatCount, formatTime } from './format.ts'
import type { PageCall, PageInput } from './page-calls.ts'
import type { PageContext } from './page-context.ts'
import type { DeadLetterShape } from './shapes.ts'
import { statusLine } from './status-line.ts'

/** Chosen: fits on two screens; the next ones follow on request. */
const perPage = 50
const pauseMs = 5_000

const columns: readonly Column<DeadLetterShape>[] = [
  { title: 'Update', cell: (letter) => `${letter.update_id}` },
  { title: 'Type', cell: ({ type }) => type },
  { title: 'Reason', cell: ({ reason }) => reason },
  { title: 'Time', cell: ({ time }) => formatTime(time) },
  { title: 'Attempts', cell: ({ attempts }) => formatCount(attempts) },
  { title: 'Size', cell: ({ bytes }) => formatBytes(bytes) },
  { title: 'Last error', cell: (letter) => letter.last_error ?? '–', style: 'wrap' },
]

export function deadLettersPanel(
  { api, may, poll }: PageContext,
  queue: BotQueueName,
): HTMLElement {
  /** The list begins above this id. */
  let after = 0
  let lastId = 0
  const count = statusLine('faint')
  const payload = element('pre', { tabindex: 0, 'aria-label': 'Payload', hidden: true })
  const first = buttonElement('First page', () => turn(0))
  const next = buttonElement('Next page', () => turn(lastId))
  const actions: Column<DeadLetterShape> = { title: 'Actions', cell: buttonsOf, style: 'actions' }
  const table = dataTable('Dead letters', [...columns, actions])
  /** What is of use only if there are dead letters. */
  const list = element(
    'div',
    { hidden: true },
    element('div', { class: 'controls' }, ...(may('manage') ? buttonsOfAll() : []), first, next),
    table.root,
    payload,
  )

  async function refresh(): Promise<string> {
    const input = ofQueue(queue, { limit: perPage, after })
    const { dead_letters: letters, total } = await api.call('listDeadLetters', input)
    list.hidden = total === 0
    payload.hidden ||= total === 0
    first.hidden = after === 0
    next.hidden = letters.length < perPage
    lastId = letters.at(-1)?.update_id ?? 0
    table.show(letters)
    return countText(total)
  }

  function turn(to: number): void {
    after = to
    count.run(refresh)
  }

  /** Returns what a button does: it acts, if the reader answers the question with yes. */
  function actor<Id extends PageCall>(id: Id, input: PageInput<Id>, question?: string): () => void {
    return () => {
      if (question !== undefined && !confirm(question)) return
      count.run(async () => {
        await api.call(id, input)
        return refresh()
      })
    }
  }

  function buttonsOf({ update_id: id }: DeadLetterShape): readonly HTMLElement[] {
    const input = { ...ofQueue(queue, {}), update_id: id }
    const show = async (): Promise<string> => {
      const { update } = await api.call('getDeadLetter', input)
      payload.textContent = JSON.stringify(update, undefined, 1)
      payload.hidden = false
      payload.focus()
      return refresh()
    }
    const shown = buttonElement('Show', () => count.run(show), id)
    if (!may('manage')) return [shown]
    const drop = actor('dropDeadLetter', input, `Drop dead letter ${id}?`)
    const replay = actor('replayDeadLetter', input)
    return [shown, buttonElement('Replay', replay, id), buttonElement('Drop', drop, id)]
  }

  function buttonsOfAll(): readonly HTMLElement[] {
    const all = ofQueue(queue, {})
    const question = 'Drop all dead letters of this queue? They cannot be restored.'
    const replay = actor('replayDeadLetters', all, 'Push all dead letters of this queue again?')
    const drop = actor('dropDeadLetters', all, question)
    return [buttonElement('Replay all', replay), buttonElement('Drop all', drop)]
  }

  poll(pauseMs, () => refresh().then(count.say))
  return cardElement('Dead letters', count.root, list)
}

function countText(total: number): string {
  if (total === 0) return 'No dead letters.'
  return total === 1 ? '1 dead letter' : `${formatCount(total)} dead letters`
}
