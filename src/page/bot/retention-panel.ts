/** How long the updates of a queue stay readable after they left. */
import { actLabels } from '../frame/act-labels.ts'
import { amountField } from '../elements/fields.ts'
import { callForm } from '../elements/call-form.ts'
import {
  durationUnits,
  sizeUnits,
  formatAge,
  formatBytes,
  formatCount,
} from '../elements/format.ts'
import { type BotQueueName, ofQueue } from '../frame/page-calls.ts'
import { element } from '../elements/element.ts'
import type { PageContext } from '../frame/page-context.ts'
import type { ResultShape } from '../frame/shapes.ts'
import { settingCard } from './setting-card.ts'

const pauseMs = 5_000
type Retention = ResultShape<'getRetention'>

/** As they are sent: the server also says what is wrong with a text. */
interface Bounds {
  readonly retain: number | string | null
  readonly retain_bytes: number | string | null
}

export function retentionPanel(
  { api, poll, toast }: PageContext,
  queue: BotQueueName,
): HTMLElement {
  const state = element('p', { class: 'faint' })
  let present: Bounds = { retain: null, retain_bytes: null }
  const [placeholder, label] = ['default', 'Updates that have left stay readable for']
  const retain = amountField({ label, name: 'retain', units: durationUnits, placeholder })
  const bytes = amountField({
    label: 'At most',
    name: 'retain_bytes',
    units: sizeUnits,
    placeholder,
  })
  const put = async (wanted: Bounds): Promise<void> => {
    show(await api.call('setRetention', ofQueue(queue, {}), { raw: JSON.stringify(wanted) }))
  }
  const set = async (): Promise<string> => {
    const before = present
    await put({ retain: retain.value(), retain_bytes: bytes.value() })
    toast('What is kept is set.', () => put(before))
    return ''
  }
  const form = callForm({ submit: actLabels.setRetention, send: set }, retain.root, bytes.root)
  const show = (now: Retention): void => {
    present = { retain: now.retain, retain_bytes: now.retain_bytes }
    state.textContent = retentionText(now)
    if (form.isEdited()) return
    retain.show(now.retain)
    bytes.show(now.retain_bytes)
    form.settle()
  }
  poll(pauseMs, async () => show(await api.call('getRetention', ofQueue(queue, {}))))
  return settingCard('Look back', state, form.root)
}

export function retentionText({ in_effect: now, kept, kept_bytes: bytes }: Retention): string {
  const what = kept === 1 ? '1 update is kept' : `${formatCount(kept)} updates are kept`
  const rule =
    now.retain === 0
      ? 'no update is kept after it has left'
      : `updates are kept for ${formatAge(now.retain)}, ${formatBytes(now.retain_bytes)} at most`
  return `${what} (${formatBytes(bytes)}); ${rule}.`
}
