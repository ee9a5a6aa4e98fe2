/** Shows and sets the limit of deliveries per second that an operator gives to a queue. */
import { type BotQueueName, ofQueue } from '../frame/page-calls.ts'
import { element, formElement, submitElement } from '../elements/element.ts'
import type { PageContext } from '../frame/page-context.ts'
import type { ResultShape } from '../frame/shapes.ts'
import { statusLine } from '../elements/messages.ts'

const pauseMs = 5_000

export function limitPanel(
  { api, may, poll, toast }: PageContext,
  queue: BotQueueName,
): HTMLElement {
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
  /** As the server has it. */
  let present: number | null = null
  const result = statusLine('error note', 'alert')
  const set = async (): Promise<string> => {
    const { value } = limit
    // The server says what is wrong with a text that is no number.
    const wanted = value === '' ? null : Number.isNaN(Number(value)) ? value : Number(value)
    const before = present
    await put(wanted)
    isEdited = false
    const text =
      wanted === null ? 'There is no limit now.' : `The limit is ${wanted} per second now.`
    toast(text, () => put(before))
    return ''
  }
  const put = async (wanted: number | string | null): Promise<void> => {
    const raw = JSON.stringify({ deliveries_per_second: wanted })
    show(await api.call('setLimits', ofQueue(queue, {}), { raw }))
  }
  const show = (limits: ResultShape<'getLimits'>): void => {
    present = limits.deliveries_per_second
    if (!isEdited) limit.value = `${present ?? ''}`
  }
  poll(pauseMs, async () => show(await api.call('getLimits', ofQueue(queue, {}))))
  return formElement(
    () => result.run(set),
    element(
      'div',
      { class: 'controls' },
      element('label', {}, 'Deliveries per second, at most', limit),
      may('manage') ? submitElement('Set limit') : undefined,
    ),
    result.root,
  )
}
