/** How long the updates of a queue stay readable after they left. */
import { type AmountField, amountField } from '../elements/fields.ts'
import {
  durationUnits,
  sizeUnits,
  type Unit,
  formatAge,
  formatBytes,
  formatCount,
} from '../elements/format.ts'
import { type BotQueueName, ofQueue } from '../frame/page-calls.ts'
import { cardElement, element, formElement, submitElement } from '../elements/element.ts'
import type { PageContext } from '../frame/page-context.ts'
import type { ResultShape } from '../frame/shapes.ts'
import { statusLine } from '../elements/messages.ts'

const pauseMs = 5_000
type Retention = ResultShape<'getRetention'>

/** As they are sent: the server also says what is wrong with a text. */
interface Bounds {
  readonly retain: number | string | null
  readonly retain_bytes: number | string | null
}

export function retentionPanel(
  { api, may, poll, toast }: PageContext,
  queue: BotQueueName,
): HTMLElement {
  const state = element('p', { class: 'faint lead' })
  const result = statusLine('error note', 'alert')
  let present: Retention | undefined
  let isEdited = false
  const field = (label: string, units: readonly Unit[]): AmountField =>
    amountField({
      label,
      units,
      placeholder: 'default',
      isReadonly: !may('manage'),
      onEdit: () => {
        isEdited = true
      },
    })
  const retain = field('Updates that have left stay readable for', durationUnits)
  const bytes = field('At most', sizeUnits)
  const show = (now: Retention): void => {
    present = now
    state.textContent = retentionText(now)
    if (isEdited) return
    retain.show(now.retain)
    bytes.show(now.retain_bytes)
  }
  const put = async (wanted: Bounds): Promise<void> => {
    // The server says what is wrong with a text that is no number.
    show(await api.call('setRetention', ofQueue(queue, {}), { raw: JSON.stringify(wanted) }))
  }
  const set = async (): Promise<string> => {
    const before = { retain: present?.retain ?? null, retain_bytes: present?.retain_bytes ?? null }
    await put({ retain: retain.value(), retain_bytes: bytes.value() })
    isEdited = false
    toast('What is kept is set.', () => put(before))
    return ''
  }
  poll(pauseMs, async () => show(await api.call('getRetention', ofQueue(queue, {}))))
  const form = formElement(
    () => result.run(set),
    element(
      'div',
      { class: 'controls' },
      retain.root,
      bytes.root,
      may('manage') ? submitElement('Set') : undefined,
    ),
    result.root,
  )
  return cardElement('Look back', state, form)
}

function retentionText({ in_effect: now, kept, kept_bytes: bytes }: Retention): string {
  const what = kept === 1 ? '1 update is kept' : `${formatCount(kept)} updates are kept`
  const rule =
    now.retain === 0
      ? 'no update is kept after it has left'
      : `updates are kept for ${formatAge(now.retain)}, ${formatBytes(now.retain_bytes)} at most`
  return `${what} (${formatBytes(bytes)}); ${rule}.`
}
