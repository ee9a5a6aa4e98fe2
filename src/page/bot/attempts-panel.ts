/** The last attempts to deliver, newest first. Equal ones in a row are one line with their number, and each line opens. */
import { type Column, dataTable, emptyState } from '../elements/data-table.ts'
import { type Child, cardElement, element } from '../elements/element.ts'
import { formatCount, formatExact, formatMs } from '../elements/format.ts'
import {
  badgeElement,
  type Facts,
  factList,
  type PagePart,
  timeElement,
  updateLink,
} from '../elements/page-part.ts'
import { type BotQueueName, ofQueue } from '../frame/page-calls.ts'
import type { PageContext } from '../frame/page-context.ts'
import { waitingFor } from '../elements/waiting.ts'
import type { AttemptShape, QueueShape, RequestShape, ShownHeaderShape } from '../frame/shapes.ts'
import { droppedText, isResponseDropped } from '../../api/dropped-response.ts'
import { type FoldedAttempts, foldAttempts } from '../../api/fold-attempts.ts'

const pauseMs = 1_000

export interface AttemptsPanelOptions {
  readonly onRead: (attempts: readonly AttemptShape[]) => void
  /** Whether the last answer of the endpoint is above the list. */
  readonly hasAnswer: boolean
}

/**
 * Shows the attempts of a queue that has a webhook.
 *
 * @param options - `onRead` gets the attempts, the newest first, each time that they are read
 */
export function attemptsPanel(
  { api, clock, poll }: PageContext,
  queue: BotQueueName,
  { onRead, hasAnswer }: AttemptsPanelOptions,
): PagePart<QueueShape['mode']> {
  const columns: readonly Column<FoldedAttempts<AttemptShape>>[] = [
    { title: 'Time', isPlain: true, cell: ({ last }) => timeElement(clock, last.time) },
    { title: 'Result', style: 'state', isPlain: true, cell: resultOf },
    { title: 'Why', isPlain: true, cell: ({ last }) => last.error ?? '–', style: 'wrap' },
    { title: 'Update', cell: (folded) => updatesText(folded, queue) },
    { title: 'Took', cell: ({ last }) => durationText(last), style: 'number' },
  ]
  const empty = emptyState({
    title: 'No attempts yet.',
    text: 'Each request to the webhook appears here, with its result. Push a test update on the tab Try.',
  })
  empty.hidden = true
  const waiting = waitingFor()
  let request: RequestShape | null | undefined
  const table = dataTable('Attempts', columns, {
    more: {
      keyOf: ({ key }) => key,
      detailOf: ({ attempts }) => attemptDetails(attempts, queue, request),
    },
  })
  const answer = lastAnswer(clock)
  let mode: QueueShape['mode'] | undefined
  const hurry = poll(
    pauseMs,
    async () => {
      if (mode !== 'webhook') return
      const { attempts, ...rest } = await api.call('listAttempts', ofQueue(queue, {}))
      request = rest.request
      waiting.done()
      empty.hidden = attempts.length > 0
      table.show(foldAttempts(attempts))
      if (hasAnswer) answer.show(attempts[0])
      onRead(attempts)
    },
    waiting,
  )
  const show = (now: QueueShape['mode']): void => {
    const isNew = mode !== now
    mode = now
    if (now !== 'webhook') waiting.done()
    if (isNew) hurry()
  }
  return { root: cardElement('Attempts', waiting.root, empty, answer.root, table.root), show }
}

/** What the endpoint answered last, if it did not take the update: nobody need open a line for it. */
function lastAnswer(clock: PageContext['clock']): PagePart<AttemptShape | undefined> {
  const root = element('div', { class: 'answer', hidden: true })
  let shown = ''
  const show = (last: AttemptShape | undefined): void => {
    const { error = null, status = null } = last ?? {}
    root.hidden = last === undefined || error === null || status === null
    const text = JSON.stringify(last)
    if (last === undefined || root.hidden || text === shown) return
    shown = text
    const { response_body: body } = last
    const said = ['Last answer: ', `${error}, `, timeElement(clock, last.time)]
    const content =
      typeof body === 'string' && body !== ''
        ? element('pre', { tabindex: 0, 'aria-label': 'Last answer' }, body)
        : element(
            'p',
            { class: 'faint' },
            isResponseDropped(last) ? droppedText : 'Without a body.',
          )
    root.replaceChildren(element('p', {}, ...said), content)
  }
  return { root, show }
}

function resultOf({
  last,
  attempts,
}: FoldedAttempts<AttemptShape>): readonly (HTMLElement | string)[] {
  const isGood = last.error === null
  const word = last.status === null ? (isGood ? 'delivered' : 'failed') : `${last.status}`
  const times = element('span', { class: 'times' }, `× ${formatCount(attempts.length)}`)
  const state = badgeElement(word, isGood ? 'healthy' : 'failing')
  return attempts.length > 1 ? [state, times] : [state]
}

function updatesText({ attempts }: FoldedAttempts<AttemptShape>, queue: BotQueueName): Child {
  const ids = [...new Set(attempts.map((attempt) => attempt.update_id))]
  return ids.length > 1 ? `${formatCount(ids.length)} updates` : updateLink(queue, ids[0])
}

/** What requests look like now, and each attempt of a line with everything that is known of it. */
function attemptDetails(
  attempts: readonly AttemptShape[],
  queue: BotQueueName,
  request: RequestShape | null | undefined,
): HTMLElement {
  const [first, ...others] = attempts
  const each = others.map((attempt) =>
    element(
      'details',
      { class: 'options' },
      element('summary', {}, `${formatExact(attempt.time)}, update ${attempt.update_id ?? '–'}`),
      attemptFacts(attempt, queue),
    ),
  )
  const facts = first && attemptFacts(first, queue)
  return element('div', {}, attemptHeaders(request, undefined), facts, ...each)
}

/** Everything that is known of an attempt, with the beginning of what the endpoint answered. */
export function attemptFacts(attempt: AttemptShape, queue: BotQueueName): HTMLElement {
  const { next_retry: retry, response_body: body, traceparent } = attempt
  const facts = factList()
  facts.show([
    ['Ended', formatExact(attempt.time)],
    ['Update', updateLink(queue, attempt.update_id)],
    ['Address', attempt.address ?? '–'],
    ['Status', `${attempt.status ?? 'no response'}`],
    ['Took', durationText(attempt)],
    ['Error', attempt.error ?? 'none'],
    ['Next try', retry === null ? 'none' : `${formatExact(retry)}, at the earliest`],
    ...(traceparent === undefined ? [] : ([['Trace', traceparent]] as const)),
    ...(isResponseDropped(attempt) ? ([['Response', droppedText]] as const) : []),
  ])
  const answer =
    typeof body === 'string' && body !== ''
      ? element('pre', { tabindex: 0, 'aria-label': 'Response' }, body)
      : undefined
  const headers = attemptHeaders(undefined, attempt.response_headers)
  return element('div', { class: 'note' }, facts.root, headers, answer)
}

/** How long an attempt took. */
export function durationText({ duration_ms: ms }: AttemptShape): string {
  return formatMs(ms)
}

/** Makes the headers of the request and of the response to an attempt, as far as they are known; undefined if none are. */
export function attemptHeaders(
  request: RequestShape | null | undefined,
  response: readonly ShownHeaderShape[] | null | undefined,
): HTMLElement | undefined {
  const parts = [
    ...headerPart('Request, as it is sent now', requestFacts(request)),
    ...headerPart('Response', factsOf(response)),
  ]
  return parts.length === 0 ? undefined : element('div', {}, ...parts)
}

function requestFacts(request: RequestShape | null | undefined): Facts {
  if (request === null || request === undefined) return []
  const { method, host, headers } = request
  return [[method, `to ${host}`], ...factsOf(headers)]
}

function factsOf(headers: readonly ShownHeaderShape[] | null | undefined): Facts {
  return (headers ?? []).map(({ name, value }) => [name, value] as const)
}

function headerPart(title: string, facts: Facts): readonly HTMLElement[] {
  if (facts.length === 0) return []
  const list = factList()
  list.show(facts)
  return [element('h3', {}, title), list.root]
}
