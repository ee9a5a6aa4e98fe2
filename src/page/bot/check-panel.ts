/** Checks the endpoint of the webhook: a row for each step with its time, and one sentence that says what to do. */
import { focusable } from '../frame/focus-query.ts'
import { actLabels } from '../frame/act-labels.ts'
import { attemptHeaders } from './attempts-panel.ts'
import { badgeElement } from '../elements/page-part.ts'
import { type BotQueueName, ofQueue } from '../frame/page-calls.ts'
import { type Column, dataTable } from '../elements/data-table.ts'
import { buttonElement, cardElement, element } from '../elements/element.ts'
import { formatMs } from '../elements/format.ts'
import type { PageContext } from '../frame/page-context.ts'
import type { EndpointCheckShape } from '../frame/shapes.ts'
import { statusLine } from '../elements/messages.ts'

type Step = EndpointCheckShape['steps'][number]

const stepTitles: Readonly<Record<Step['step'], string>> = {
  name: 'Name',
  addresses: 'Addresses',
  connection: 'Connection',
  tls: 'TLS',
  post: 'POST',
}
/** The words of badges that have the color of the state. */
const badges: Readonly<Record<Step['state'], string>> = {
  ok: 'healthy',
  failed: 'failing',
  skipped: 'polling',
}

const columns: readonly Column<Step>[] = [
  { title: 'Step', cell: ({ step }) => stepTitles[step], isHead: true, isPlain: true },
  {
    title: 'Result',
    style: 'state',
    isPlain: true,
    cell: ({ state }) => badgeElement(state, badges[state]),
  },
  { title: 'Took', cell: tookText, style: 'number' },
  { title: 'What', isPlain: true, cell: ({ text }) => text, style: 'wrap' },
]

export function checkPanel({ api }: PageContext, queue: BotQueueName): HTMLElement {
  const advice = statusLine('')
  const steps = dataTable('Steps of the check', columns)
  const addresses = element('ul', { hidden: true })
  const response = element('div')
  let isChecking = false

  const clear = (): void => {
    steps.show([])
    addresses.hidden = true
    response.replaceChildren()
  }
  const show = (check: EndpointCheckShape): void => {
    steps.show(check.steps)
    addresses.replaceChildren(...check.addresses.map(addressElement))
    addresses.hidden = check.addresses.length === 0
    const headers = attemptHeaders(undefined, check.response_headers)
    if (headers !== undefined) response.append(headers)
    const { response_body: body } = check
    if (body !== null) {
      response.append(element('pre', { tabindex: 0, 'aria-label': 'Response' }, body))
    }
  }
  const check = async (): Promise<string> => {
    if (isChecking) return 'Checking…'
    isChecking = true
    clear()
    advice.say('Checking…')
    try {
      const result = await api.call('checkWebhook', ofQueue(queue, {}))
      show(result)
      return result.advice
    } finally {
      isChecking = false
    }
  }
  const button = focusable(
    buttonElement(actLabels.checkWebhook, () => advice.run(check), { style: 'primary' }),
    'check',
  )
  return cardElement(
    actLabels.checkWebhook,
    element(
      'p',
      {},
      'Goes the way of a delivery once, and posts an empty update that the bot ignores.',
    ),
    element('p', { class: 'note' }, button),
    advice.root,
    steps.root,
    addresses,
    response,
  )
}

function tookText({ duration_ms: ms }: Step): string {
  return formatMs(ms)
}

function addressElement({
  address,
  refusal,
}: EndpointCheckShape['addresses'][number]): HTMLElement {
  return element('li', {}, refusal === null ? `${address}: allowed` : `${address}: ${refusal}`)
}
