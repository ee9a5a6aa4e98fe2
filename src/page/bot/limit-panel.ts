/** Shows and sets the limit of deliveries per second that an operator gives to a queue. */
import { actLabels } from '../frame/act-labels.ts'
import { type BotQueueName, ofQueue } from '../frame/page-calls.ts'
import { callForm } from '../elements/call-form.ts'
import { fieldElement, textField } from '../elements/fields.ts'
import type { PageContext } from '../frame/page-context.ts'
import type { ResultShape } from '../frame/shapes.ts'
import { settingCard } from './setting-card.ts'

const pauseMs = 5_000

export function limitPanel({ api, poll, toast }: PageContext, queue: BotQueueName): HTMLElement {
  const limit = textField('deliveries_per_second', 'no limit', 'decimal')
  /** As the server has it. */
  let present: number | null = null
  const put = async (wanted: number | string | null): Promise<void> => {
    const raw = JSON.stringify({ deliveries_per_second: wanted })
    show(await api.call('setLimits', ofQueue(queue, {}), { raw }))
  }
  const set = async (): Promise<string> => {
    const { value } = limit
    const before = present
    // The server says what is wrong with a text that is no number.
    await put(value === '' ? null : Number.isNaN(Number(value)) ? value : Number(value))
    toast(limitText(value), () => put(before))
    return ''
  }
  const form = callForm(
    { submit: actLabels.setLimits, send: set },
    fieldElement('Deliveries per second, at most', limit),
  )
  const show = (limits: ResultShape<'getLimits'>): void => {
    present = limits.deliveries_per_second
    if (form.isEdited()) return
    limit.value = `${present ?? ''}`
    form.settle()
  }
  poll(pauseMs, async () => show(await api.call('getLimits', ofQueue(queue, {}))))
  return settingCard(
    'Limit of deliveries',
    'Protects an endpoint that cannot take more.',
    form.root,
  )
}

function limitText(value: string): string {
  return value === '' ? 'There is no limit now.' : `The limit is ${value} per second now.`
}
