/** What an operator sets of a bot: its webhook, its names and deliveries, the check of its updates, its token and keys, and its end. */
import type { BotQueueName } from './bot-queue-name.ts'
import { secretField } from './secret-field.ts'
import { buttonElement, cardElement, element, formElement, setElementText } from './element.ts'
import { eraseKey } from './erase-key.ts'
import { deliverySettingsPanel } from './delivery-settings-panel.ts'
import { formatCount } from './format.ts'
import { headersPanel } from './headers-panel.ts'
import { limitPanel } from './limit-panel.ts'
import { overlapField } from './overlap-field.ts'
import type { PageContext } from './page-context.ts'
import type { PagePart } from './page-part.ts'
import { relayPanel } from './relay-panel.ts'
import { retentionPanel } from './retention-panel.ts'
import type { BotShape } from './shapes.ts'
import { signingKeysPanel } from './signing-keys-panel.ts'
import { statusLine } from './status-line.ts'
import { webhookPanel } from './webhook-panel.ts'

/** Shows the settings of a queue, with those of its bot. */
export function settingsPanel(context: PageContext, queue: BotQueueName): PagePart<BotShape> {
  const { may } = context
  const webhook = webhookPanel(context, queue)
  const deliveries = deliverySettingsPanel(context, queue.botId)
  const headers = headersPanel(context, queue.botId)
  const relay = relayPanel(context, queue.botId)
  const limit = cardElement('Limit of deliveries', limitPanel(context, queue))
  const validation = validationCard(context, queue)
  const cards = may('manage')
    ? [
        validation.root,
        tokenCard(context, queue),
        eraseCard(context, queue),
        removeCard(context, queue),
      ]
    : []
  const [check, token, erase, remove] = cards
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
    element('div', { class: 'pair' }, token, check),
    retentionPanel(context, queue),
    signingKeysPanel(context, queue),
    element('div', { class: 'pair' }, erase, remove),
  )
  const show = (bot: BotShape): void => {
    const state = queue.isTest ? bot.test : bot
    webhook.show(state)
    deliveries.show(bot)
    headers.show(bot)
    relay.show(bot)
    limit.hidden = state.mode !== 'webhook'
    validation.show(bot)
  }
  return { root, show }
}

function validationCard({ api, toast }: PageContext, { botId }: BotQueueName): PagePart<BotShape> {
  const result = statusLine('error note', 'alert')
  let isValidated = false
  const set = async (validate: 'telegram' | null): Promise<void> => {
    await api.call('changeBot', { id: botId, body: { validate } })
    isValidated = validate !== null
    setElementText(change, isValidated ? 'Stop checking' : 'Check every push')
  }
  const change = buttonElement('Check every push', () =>
    result.run(async () => {
      const before = isValidated ? ('telegram' as const) : null
      await set(isValidated ? null : 'telegram')
      toast(isValidated ? 'Every push is checked now.' : 'Pushes are not checked any more.', () =>
        set(before),
      )
      return ''
    }),
  )
  const about =
    'The server can refuse updates that lack a field that bot frameworks need, before they reach the bot.'
  const show = ({ validate }: BotShape): void => {
    isValidated = validate !== null
    setElementText(change, isValidated ? 'Stop checking' : 'Check every push')
  }
  const root = cardElement(
    'Check of updates',
    element('p', { class: 'faint lead' }, about),
    change,
    result.root,
  )
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
  const form = formElement(
    () => result.run(() => eraseKey(context, queue, key.value.trim())),
    element(
      'div',
      { class: 'controls' },
      element('label', {}, 'Ordering key', key),
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
