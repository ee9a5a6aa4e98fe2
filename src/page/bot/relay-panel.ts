/** The relay of a bot, which takes its updates from another bot API server: what it does, a form that sets it, and its end. */
import { actLabels } from '../frame/act-labels.ts'
import { actButton } from '../frame/act.ts'
import { callForm } from '../elements/call-form.ts'
import { element } from '../elements/element.ts'
import { fieldElement, textField } from '../elements/fields.ts'
import { formatAgo, formatCount, formatUpdates } from '../elements/format.ts'
import type { PageContext } from '../frame/page-context.ts'
import { type PagePart, badgeElement } from '../elements/page-part.ts'
import { setMessage } from '../elements/messages.ts'
import { settingCard } from './setting-card.ts'
import type { BotShape } from '../frame/shapes.ts'
import { asSentence } from '../elements/format.ts'

type Relay = NonNullable<BotShape['relay']>

export function relayPanel(context: PageContext, botId: string): PagePart<BotShape> {
  const { clock, may, takesRelays } = context
  const state = element('p', { class: 'faint' })
  const form = may('manage') && takesRelays ? relayForm(context, botId) : undefined
  const root = settingCard('Relay', state, form?.root)
  const show = (bot: BotShape): void => {
    const { relay } = bot
    // A server that takes no relays may have had one.
    root.hidden = relay === undefined && form === undefined
    form?.show(bot)
    setMessage(state, relay === undefined ? noRelayText : saidOf(relay, clock.nowMs() / 1_000))
  }
  root.hidden = form === undefined
  return { root, show }
}

const noRelayText = 'The bot takes no updates from another server.'

function saidOf(relay: Relay, nowS: number): readonly (HTMLElement | string)[] {
  const { from, relayed, refused, last_update: last } = relay
  const stored =
    last === null
      ? 'No update was stored yet.'
      : `${formatUpdates(relayed, true)} stored, the last ${formatAgo(last, nowS)}.`
  const skipped =
    refused === 0 ? '' : ` ${formatCount(refused)} could not be stored and were skipped.`
  const lead = ` Takes updates from ${from}. ${pauseText(relay)}`
  return [
    badgeElement(relay.state, relay.state === 'paused' ? 'degraded' : 'healthy'),
    `${lead}${stored}${skipped}`,
  ]
}

function pauseText({ state, reason }: Relay): string {
  return state === 'paused' && reason !== null ? `${asSentence(reason)} ` : ''
}

function relayForm(context: PageContext, botId: string): PagePart<BotShape> {
  const { api, toast } = context
  const from = textField('from', 'https://api.telegram.org', 'url')
  const token = element('input', {
    name: 'token',
    type: 'password',
    autocomplete: 'new-password',
  })
  const set = async (): Promise<string> => {
    const body = { from: from.value.trim(), token: token.value.trim() || undefined }
    // The field is empty whatever comes of it, as that of a key.
    token.value = ''
    await api.call('setRelay', { id: botId, body })
    toast(`The bot takes updates from ${body.from}.`)
    return ''
  }
  const removal = actButton(context, 'removeRelay', {
    label: actLabels.removeRelay,
    question: () => ({
      title: 'Remove the relay?',
      text: 'The bot gets no more updates from the other server, where nothing changes. What was relayed stays.',
    }),
    input: () => ({ id: botId }),
    said: () => 'The relay is removed.',
  })
  const form = callForm(
    { submit: actLabels.setRelay, send: set, others: [removal] },
    fieldElement('Another bot API server', from),
    fieldElement('Token there', token),
  )
  const show = ({ relay }: BotShape): void => {
    removal.hidden = relay === undefined
  }
  return { root: form.root, show }
}
