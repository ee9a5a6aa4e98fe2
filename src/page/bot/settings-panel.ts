/** What an operator sets of a bot: its webhook, its names and deliveries, the check of its updates, its token and keys, and its end. */
import type { BotQueueName } from '../frame/page-calls.ts'
import { secretField } from '../elements/copy-text.ts'
import {
  buttonElement,
  cardElement,
  element,
  formElement,
  setElementText,
} from '../elements/element.ts'
import { eraseKey } from './erase-key.ts'
import { deliverySettingsPanel } from './delivery-settings-panel.ts'
import { formatCount } from '../elements/format.ts'
import { headersPanel } from './headers-panel.ts'
import { limitPanel } from './limit-panel.ts'
import { overlapField } from '../elements/fields.ts'
import type { PageContext } from '../frame/page-context.ts'
import type { PagePart } from '../elements/page-part.ts'
import { relayPanel } from './relay-panel.ts'
import { retentionPanel } from './retention-panel.ts'
import type { BotShape } from '../frame/shapes.ts'
import { signingKeysPanel } from './signing-keys-panel.ts'
import { stateOf } from '../elements/state-head.ts'
import { statusLine } from '../elements/messages.ts'
import { webhookPanel } from './webhook-panel.ts'

/** Shows the settings of a queue, with those of its bot. */
export function settingsPanel(context: PageContext, queue: BotQueueName): PagePart<BotShape> {
  const { may } = context
  const webhook = webhookPanel(context, queue)
  const deliveries = deliverySettingsPanel(context, queue.botId)
  const headers = headersPanel(context, queue.botId)
  const relay = relayPanel(context, queue.botId)
  const limit = cardElement('Limit of deliveries', limitPanel(context, queue))
  const check = switchCard(context, queue, validation)
  const polls = switchCard(context, queue, takeover)
  const cards = may('manage')
    ? [
        check.root,
        polls.root,
        tokenCard(context, queue),
        eraseCard(context, queue),
        removeCard(context, queue),
      ]
    : []
  const [checkRoot, pollsRoot, token, erase, remove] = cards
  const root = element(
    'div',
    {},
    element(
      'div',
      { class: 'pair' },
      webhook.root,
      element('div', {}, deliveries.root, headers.root, limit),
    ),
    relay.root,
    element('div', { class: 'pair' }, token, checkRoot && element('div', {}, checkRoot, pollsRoot)),
    retentionPanel(context, queue),
    signingKeysPanel(context, queue),
    element('div', { class: 'pair' }, erase, remove),
  )
  const show = (bot: BotShape): void => {
    const state = stateOf(bot, queue)
    webhook.show(state)
    deliveries.show(bot)
    headers.show(bot)
    relay.show(bot)
    limit.hidden = state.mode !== 'webhook'
    check.show(bot)
    polls.show(bot)
  }
  return { root, show }
}

/** A setting of a bot that is on or off. */
interface SwitchedSetting {
  readonly title: string
  readonly about: string
  /** The button that sets it, and the one that takes it back. */
  readonly actions: readonly [set: string, unset: string]
  /** What is said afterward. */
  readonly said: readonly [set: string, unset: string]
  readonly body: (isOn: boolean) => { validate?: 'telegram' | null; polls?: 'take_over' | null }
  readonly isOn: (bot: BotShape) => boolean
}

const validation: SwitchedSetting = {
  title: 'Check of updates',
  about:
    'The server can refuse updates that lack a field that bot frameworks need, before they reach the bot.',
  actions: ['Check every push', 'Stop checking'],
  said: ['Every push is checked now.', 'Pushes are not checked any more.'],
  body: (isOn) => ({ validate: isOn ? 'telegram' : null }),
  isOn: ({ validate }) => validate !== null,
}

const takeover: SwitchedSetting = {
  title: 'Two polls',
  about:
    'While a new version of the bot replaces the old one, both poll. A later call can end the one that waits with an empty list, instead of 409.',
  actions: ['Let polls take over', 'Refuse with 409 again'],
  said: ['Polls take over now.', 'Polls get 409 again.'],
  body: (isOn) => ({ polls: isOn ? 'take_over' : null }),
  isOn: ({ polls }) => (polls ?? null) !== null,
}

function switchCard(
  { api, toast }: PageContext,
  { botId }: BotQueueName,
  { title, about, actions, said, body, isOn: isOnOf }: SwitchedSetting,
): PagePart<BotShape> {
  const result = statusLine('error note', 'alert')
  let isOn = false
  const label = (): void => setElementText(change, actions[isOn ? 1 : 0])
  const set = async (wanted: boolean): Promise<void> => {
    await api.call('changeBot', { id: botId, body: body(wanted) })
    isOn = wanted
    label()
  }
  const change = buttonElement(actions[0], () =>
    result.run(async () => {
      const before = isOn
      await set(!before)
      toast(said[before ? 1 : 0], () => set(before))
      return ''
    }),
  )
  const show = (bot: BotShape): void => {
    isOn = isOnOf(bot)
    label()
  }
  const root = cardElement(title, element('p', { class: 'faint lead' }, about), change, result.root)
  return { root, show }
}

function tokenCard({ api, ask, atEnd }: PageContext, { botId }: BotQueueName): HTMLElement {
  const result = statusLine('note')
  const token = secretField('The new token, which is shown only now')
  const overlap = overlapField('The old token stays valid')
  const renew = buttonElement('Renew the token', () =>
    result.run(async () => {
      const isWanted = await ask({
        title: `Give bot ${botId} a new token?`,
        text:
          overlap.seconds() === 0
            ? 'The old token ends at once: the program of the bot stops until it has the new one.'
            : 'Give the new token to the program of the bot before the old one ends.',
        action: 'Renew the token',
        isDanger: true,
      })
      if (!isWanted) return ''
      const body = { overlap: overlap.seconds() }
      const issued = await api.call('rotateToken', { id: botId, body })
      token.show(issued.token)
      return 'Copy the new token now: it cannot be shown again.'
    }),
  )
  renew.className = 'danger'
  atEnd(() => token.show(undefined))
  return cardElement(
    'Token',
    element('div', { class: 'controls' }, overlap.root, renew),
    result.root,
    token.root,
  )
}

function eraseCard(context: PageContext, queue: BotQueueName): HTMLElement {
  const result = statusLine('error note', 'alert')
  const key = element('input', { autocomplete: 'off', placeholder: 'chat.id=42' })
  const user = element('input', { autocomplete: 'off', placeholder: '42' })
  const erase = (): Promise<string> => {
    const [person, text] = [user.value.trim(), key.value.trim()]
    if (person !== '' && text !== '') return Promise.resolve('Fill in one field only.')
    return eraseKey(context, queue, person === '' ? { ordering_key: text } : { user: person })
  }
  const form = formElement(
    () => result.run(erase),
    element(
      'div',
      { class: 'controls' },
      element('label', {}, 'User or chat id', user),
      element('label', {}, 'Or ordering key', key),
      element('button', { type: 'submit', class: 'danger' }, 'Erase'),
    ),
    result.root,
  )
  const about =
    'Removes every payload of a person or a chat from the queues and the files of this bot.'
  return cardElement('Erase', element('p', { class: 'faint lead' }, about), form)
}

function removeCard({ api, ask, toast }: PageContext, { botId }: BotQueueName): HTMLElement {
  const result = statusLine('error note', 'alert')
  const remove = buttonElement(
    'Remove the bot',
    () =>
      result.run(async () => {
        const { pending, dead_letters: letters, test } = await api.call('getBot', { id: botId })
        const waiting = pending + test.pending
        const dead = letters + test.dead_letters
        const isWanted = await ask({
          title: `Remove bot ${botId}?`,
          text: `${formatCount(waiting)} pending updates and ${formatCount(dead)} dead letters are lost, and its token ends. Nothing of it can be restored.`,
          action: 'Remove the bot',
          isDanger: true,
        })
        if (!isWanted) return ''
        await api.call('removeBot', { id: botId })
        toast(`Bot ${botId} is removed.`)
        location.hash = '#/'
        return ''
      }),
    { style: 'danger' },
  )
  const about = 'Ends its token, and deletes its queues with everything that waits in them.'
  return cardElement('Remove', element('p', { class: 'faint lead' }, about), remove, result.root)
}
