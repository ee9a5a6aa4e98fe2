/** How long the updates of a queue stay readable after they left. */
import { type BotQueueName, ofQueue } from './bot-queue-name.ts'
import { cardElement, element, formElement, submitElement } from './element.ts'
import { formatAge, formatBytes, formatCount } from './format.ts'
import type { PageContext } from './page-context.ts'
import type { ResultShape } from './shapes.ts'
import { statusLine } from './status-line.ts'

const pauseMs = 5_000
const choices = [
  ['', 'as the server says'],
  ['0', 'not at all'],
  ['3600', 'for an hour'],
  ['86400', 'for a day'],
  ['604800', 'for a week'],
] as const

type Retention = ResultShape<'getRetention'>

export function retentionPanel(
  { api, may, poll, toast }: PageContext,
  queue: BotQueueName,
): HTMLElement {
  const state = element('p', { class: 'faint lead' })
  const result = statusLine('error note', 'alert')
  let present: Retention | undefined
  let isEdited = false
  const options = choices.map(([value, text]) => element('option', { value }, text))
  const retain = element('select', { onchange: () => (isEdited = true), disabled: !may('manage') })
  retain.append(...options)
  const show = (now: Retention): void => {
    present = now
    state.textContent = retentionText(now)
    if (isEdited) return
    const value = now.retain === null ? '' : `${now.retain}`
    if (!choices.some(([each]) => each === value)) {
      retain.append(element('option', { value }, `for ${formatAge(now.retain)}`))
    }
    retain.value = value
  }
  const put = async (seconds: number | null): Promise<void> => {
    // The bound in bytes is set in a terminal, and stays.
    const body = { retain: seconds, retain_bytes: present?.retain_bytes ?? null }
    show(await api.call('setRetention', { ...ofQueue(queue, {}), body }))
  }
  const set = async (): Promise<string> => {
    const before = present?.retain ?? null
    isEdited = false
    await put(retain.value === '' ? null : Number(retain.value))
    toast('What is kept is set.', () => put(before))
    return ''
  }
  poll(pauseMs, async () => show(await api.call('getRetention', ofQueue(queue, {}))))
  const form = formElement(
    () => result.run(set),
    element(
      'div',
      { class: 'controls' },
      element('label', {}, 'Updates that have left stay readable', retain),
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
