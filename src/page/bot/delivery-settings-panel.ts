/** The names of a bot, and how both of its queues deliver: its time to live, its connections and its delays of retries. */
import { actLabels } from '../frame/act-labels.ts'
import { amountField, checkField, fieldElement, textField } from '../elements/fields.ts'
import { callForm } from '../elements/call-form.ts'
import { durationUnits, wholeNumberOr } from '../elements/format.ts'
import type { BotQueueName } from '../frame/page-calls.ts'
import type { PageContext } from '../frame/page-context.ts'
import type { PagePart } from '../elements/page-part.ts'
import { settingCard } from './setting-card.ts'
import type { BotShape } from '../frame/shapes.ts'

/** What the form shows, in the form in which it is sent. The server says what is wrong with a text that is no number. */
interface Settings {
  readonly first_name: string
  readonly username: string
  readonly default_ttl: number | string | null
  readonly connections_cap: number | string | null
  readonly retry_delays: readonly (number | string)[] | null
  readonly validate: 'telegram' | null
  readonly polls: 'take_over' | null
}

export function deliverySettingsPanel(
  { api, toast }: PageContext,
  { botId }: Pick<BotQueueName, 'botId'>,
): PagePart<BotShape> {
  const fields = settingsFields()
  let present: Settings | undefined
  const patch = (settings: object): Promise<unknown> =>
    api.call('changeBot', { id: botId, body: {} }, { raw: JSON.stringify(settings) })
  const save = async (): Promise<string> => {
    if (present === undefined) return ''
    const before = present
    const wanted = fields.value()
    await patch(differences(wanted, before))
    // Until the page has read the bot anew, it would show what was before.
    present = wanted
    toast('The settings are saved.', () => patch(differences(before, wanted)))
    return ''
  }
  const form = callForm({ submit: actLabels.changeBot, send: save }, ...fields.roots)
  const show = (bot: BotShape): void => {
    present = settingsOf(bot)
    if (form.isEdited()) return
    fields.show(present)
    form.settle()
  }
  const about = 'Of both queues. What is empty has the usual value of the server.'
  return { root: settingCard('Names and deliveries', about, form.root), show }
}

interface SettingsFields {
  readonly roots: readonly HTMLElement[]
  readonly value: () => Settings
  readonly show: (settings: Settings) => void
}

function settingsFields(): SettingsFields {
  const firstName = textField('first_name')
  const username = textField('username')
  const cap = textField('connections_cap', 'no cap', 'numeric')
  const delays = textField('retry_delays', 'the usual ones', 'decimal')
  const ttl = amountField({
    label: 'Updates expire after',
    name: 'default_ttl',
    units: durationUnits,
    placeholder: 'default',
  })
  const check = checkField(
    'validate',
    'Check every push',
    'Refuses updates that lack a field that bot frameworks need, before they reach the bot.',
  )
  const polls = checkField(
    'polls',
    'Let polls take over',
    'While a new version of the bot replaces the old one, both poll. The later poll ends the one that waits with an empty list, instead of 409.',
  )
  return {
    roots: [
      fieldElement('First name', firstName),
      fieldElement('Username', username),
      ttl.root,
      fieldElement('Connections of its webhooks, at most', cap),
      fieldElement('Seconds before each retry', delays, {
        hint: 'Such as 0, 5, 60. The last one repeats.',
        isWide: true,
      }),
      check.root,
      polls.root,
    ],
    value: () => ({
      first_name: firstName.value,
      username: username.value,
      default_ttl: ttl.value(),
      connections_cap: cap.value === '' ? null : wholeNumberOr(cap.value),
      retry_delays: delaysOf(delays.value),
      validate: check.input.checked ? 'telegram' : null,
      polls: polls.input.checked ? 'take_over' : null,
    }),
    show(settings) {
      firstName.value = settings.first_name
      username.value = settings.username
      ttl.show(Number(settings.default_ttl) || null)
      cap.value = `${settings.connections_cap ?? ''}`
      delays.value = settings.retry_delays?.join(', ') ?? ''
      check.input.checked = settings.validate !== null
      polls.input.checked = settings.polls !== null
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
    validate: bot.validate,
    polls: bot.polls ?? null,
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
