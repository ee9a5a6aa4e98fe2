/** The names of a bot, and how both of its queues deliver: its time to live, its connections and its delays of retries. */
import { type AmountField, amountField } from '../elements/fields.ts'
import { durationUnits, wholeNumberOr } from '../elements/format.ts'
import { cardElement, element, formElement, submitElement } from '../elements/element.ts'
import type { PageContext } from '../frame/page-context.ts'
import type { PagePart } from '../elements/page-part.ts'
import type { BotShape } from '../frame/shapes.ts'
import { statusLine } from '../elements/messages.ts'

/** What the form shows, in the form in which it is sent. The server says what is wrong with a text that is no number. */
interface Settings {
  readonly first_name: string
  readonly username: string
  readonly default_ttl: number | string | null
  readonly connections_cap: number | string | null
  readonly retry_delays: readonly (number | string)[] | null
}

export function deliverySettingsPanel(
  { api, may, toast }: PageContext,
  botId: string,
): PagePart<BotShape> {
  const isReadonly = !may('manage')
  const result = statusLine('error note', 'alert')
  let present: Settings | undefined
  let isEdited = false
  const oninput = (): void => {
    isEdited = true
  }
  const form = settingsFields({ isReadonly, oninput })
  const show = (bot: BotShape): void => {
    present = settingsOf(bot)
    if (!isEdited) form.show(present)
  }
  const patch = (settings: object): Promise<unknown> =>
    api.call('changeBot', { id: botId, body: {} }, { raw: JSON.stringify(settings) })
  const save = async (): Promise<string> => {
    if (present === undefined) return ''
    const before = present
    const wanted = form.value()
    const changed = differences(wanted, before)
    if (Object.keys(changed).length === 0) return 'Nothing differs.'
    await patch(changed)
    // Until the page has read the bot anew, it would show what was before.
    present = wanted
    isEdited = false
    toast('The settings are saved.', () => patch(differences(before, wanted)))
    return ''
  }
  const root = cardElement(
    'Names and deliveries',
    element('p', { class: 'faint lead' }, 'What is empty has the usual value of the server.'),
    formElement(
      () => result.run(save),
      element(
        'div',
        { class: 'controls' },
        ...form.roots,
        isReadonly ? undefined : submitElement('Save'),
      ),
      result.root,
    ),
  )
  return { root, show }
}

interface SettingsFields {
  readonly roots: readonly HTMLElement[]
  readonly value: () => Settings
  readonly show: (settings: Settings) => void
}

function settingsFields(options: {
  readonly isReadonly: boolean
  readonly oninput: () => void
}): SettingsFields {
  const { isReadonly, oninput } = options
  const input = (placeholder = ''): HTMLInputElement =>
    element('input', { autocomplete: 'off', placeholder, readonly: isReadonly, oninput })
  const firstName = input()
  const username = input()
  const cap = input('no cap')
  const delays = input('the usual ones')
  const ttl: AmountField = amountField({
    label: 'Updates live, if their producer says nothing, for',
    units: durationUnits,
    placeholder: 'default',
    isReadonly,
    onEdit: oninput,
  })
  return {
    roots: [
      element('label', {}, 'First name', firstName),
      element('label', {}, 'Username', username),
      ttl.root,
      element('label', {}, 'Connections of its webhooks, at most', cap),
      element('label', {}, 'Seconds before each retry', delays),
    ],
    value: () => ({
      first_name: firstName.value,
      username: username.value,
      default_ttl: ttl.value(),
      connections_cap: cap.value === '' ? null : wholeNumberOr(cap.value),
      retry_delays: delaysOf(delays.value),
    }),
    show(settings) {
      firstName.value = settings.first_name
      username.value = settings.username
      ttl.show(Number(settings.default_ttl) || null)
      cap.value = `${settings.connections_cap ?? ''}`
      delays.value = settings.retry_delays?.join(', ') ?? ''
    },
  }
}

function settingsOf(bot: BotShape): Settings {
  return {
    first_name: bot.first_name,
    username: bot.username,
    default_ttl: bot.default_ttl ?? null,
    connections_cap: bot.connections_cap ?? null,
    retry_delays: bot.retry_delays ?? null,
  }
}

/** Returns what of `wanted` is not so in `present`. */
function differences(wanted: Settings, present: Settings): Partial<Settings> {
  const before = new Map(Object.entries(present).map(([name, value]) => [name, told(value)]))
  const changed = Object.entries(wanted).filter(([name, value]) => before.get(name) !== told(value))
  return Object.fromEntries(changed)
}

function told(value: unknown): string {
  return JSON.stringify(value)
}

function delaysOf(text: string): readonly (number | string)[] | null {
  const parts = text.split(/[\s,]+/).filter(Boolean)
  return parts.length === 0 ? null : parts.map(wholeNumberOr)
}
