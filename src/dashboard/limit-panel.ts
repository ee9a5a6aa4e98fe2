/** Shows and sets the limit of deliveries per second that an operator gives to a queue. */
import { type BotQueueName, ofQueue } from './bot-queue-name.ts'
import { element, formElement } from './element.ts'
import type { PageContext } from './page-context.ts'
import { statusLine } from './status-line.ts'

const pauseMs = 5_000

export function limitPanel({ api, may, poll }: PageContext, queue: BotQueueName): HTMLElement {
  /** The reader has typed a limit that is not set. */
  let isEdited = false
  const limit = element('input', {
    inputmode: 'decimal',
    autocomplete: 'off',
    placeholder: 'no limit',
    readonly: !may('manage'),
    oninput: () => {
      isEdited = true
    },
  })
  const result = statusLine('note')
  const set = async (): Promise<string> => {
    const { value } = limit
    // The server says what is wrong with a text that is no number.
    const wanted = value === '' ? null : Number.isNaN(Number(value)) ? value : Number(value)
    const body = JSON.stringify({ deliveries_per_second: wanted })
    await api.call('setLimits', ofQueue(queue, {}), body)
    isEdited = false
    return wanted === null ? 'There is no limit now.' : `The limit is ${wanted} per second now.`
  }
  poll(pauseMs, async () => {
    const limits = await api.call('getLimits', ofQueue(queue, {}))
    if (!isEdited) limit.value = `${limits.deliveries_per_second ?? ''}`
  })
  return formElement(
    () => result.run(set),
    element(
      'div',
      { class: 'controls' },
      element('label', {}, 'Deliveries per second, at most', limit),
      may('manage') ? element('button', { type: 'submit' }, 'Set limit') : undefined,
    ),
    result.root,
  )
}
