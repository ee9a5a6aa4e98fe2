/** What cannot be undone, apart from the settings: a new token, the erasure of a person, and the end of the bot. */
import { actLabels } from '../frame/act-labels.ts'
import { actButton } from '../frame/act.ts'
import { callForm } from '../elements/call-form.ts'
import { secretField } from '../elements/copy-text.ts'
import { type Child, element } from '../elements/element.ts'
import { eraseKey } from './erase-key.ts'
import { fieldElement, overlapField, textField } from '../elements/fields.ts'
import { formatCount } from '../elements/format.ts'
import type { BotQueueName } from '../frame/page-calls.ts'
import type { PageContext } from '../frame/page-context.ts'
import type { BotShape } from '../frame/shapes.ts'

export function dangerZone(context: PageContext, queue: BotQueueName): HTMLElement {
  return element(
    'section',
    { class: 'card danger-zone' },
    element('h2', {}, 'Danger zone'),
    tokenRow(context, queue),
    eraseRow(context, queue),
    removeRow(context, queue),
  )
}

function rowOf(title: string, about: string, ...children: readonly Child[]): HTMLElement {
  return element(
    'div',
    { class: 'setting' },
    element(
      'div',
      { class: 'about' },
      element('h3', {}, title),
      element('p', { class: 'faint' }, about),
    ),
    element('div', {}, ...children),
  )
}

function tokenRow(context: PageContext, { botId }: BotQueueName): HTMLElement {
  const token = secretField('The new token (copy it now: it is not shown again)')
  let overlap = overlapField('The old token')
  const renew = actButton(context, 'rotateToken', {
    label: actLabels.rotateToken,
    question: async () => {
      const bot = await context.api.call('getBot', { id: botId })
      overlap = overlapField('The old token')
      return {
        title: `Rotate the token of ${nameOf(bot)}?`,
        text: 'It gets a new token. Its program stops when the old token ends, unless it has the new one by then.',
        fields: overlap.root,
      }
    },
    input: () => ({ id: botId, body: { overlap: overlap.seconds() } }),
    said: () => 'Copy the new token now: it cannot be shown again.',
    after: (issued) => token.show(issued.token),
  })
  context.atEnd(() => token.show(undefined))
  const about = 'A new token for the program of the bot, such as after the old one has leaked.'
  return rowOf('Token', about, renew, token.root)
}

function eraseRow(context: PageContext, queue: BotQueueName): HTMLElement {
  const user = textField('user', '42')
  const key = textField('ordering_key', 'chat.id=42')
  const erase = (): Promise<string> => {
    const [person, text] = [user.value.trim(), key.value.trim()]
    if (person !== '' && text !== '') return Promise.resolve('Fill in one field only.')
    return eraseKey(context, queue, person === '' ? { ordering_key: text } : { user: person })
  }
  const form = callForm(
    { submit: actLabels.eraseUpdates, send: erase, kind: 'danger' },
    fieldElement('User or chat id', user),
    fieldElement('Or ordering key', key),
  )
  const about =
    'Erases every payload of a person or a chat in the queues and the files of this bot.'
  return rowOf('Erase', about, form.root)
}

function removeRow(context: PageContext, { botId }: BotQueueName): HTMLElement {
  let name = ''
  const remove = actButton(context, 'removeBot', {
    label: actLabels.removeBot,
    question: async () => {
      const bot = await context.api.call('getBot', { id: botId })
      name = nameOf(bot)
      const { pending, dead_letters: letters, test } = bot
      const waiting = formatCount(pending + test.pending)
      const dead = formatCount(letters + test.dead_letters)
      return {
        title: `Remove ${name}?`,
        text: `${waiting} pending updates and ${dead} dead letters are lost, and its token ends. Nothing of it can be restored.`,
      }
    },
    input: () => ({ id: botId }),
    said: () => `${name} is removed.`,
    after: () => {
      location.hash = '#/'
    },
  })
  const about = 'Ends its token, and removes its queues with everything that waits in them.'
  return rowOf('Remove', about, remove)
}

function nameOf({ first_name: name, username, bot_id: botId }: BotShape): string {
  return `${name} @${username}, bot ${botId}`
}
