/** Pushes a test update and says how far it has come: stored, then delivered by the webhook or confirmed by a poll. */
import { buttonElement, cardElement, element } from '../elements/element.ts'
import { type BotQueueName, ofQueue, type PageInput } from '../frame/page-calls.ts'
import type { PageContext } from '../frame/page-context.ts'
import { type Message, statusLine } from '../elements/messages.ts'
import { updateLink } from '../elements/page-part.ts'
import { type WatchedUpdate, watchedUpdate } from '../updates/watched-update.ts'

/** A complete message of a private chat, so that no framework fails on it. */
function sampleUpdate(nowMs: number): string {
  const person = { id: 1, first_name: 'Dashboard' }
  const message = {
    message_id: 1,
    date: Math.floor(nowMs / 1_000),
    chat: { ...person, type: 'private' },
    from: { ...person, is_bot: false },
    text: 'A test update from the dashboard',
  }
  return JSON.stringify({ message }, undefined, 1)
}

export interface PushPanel extends Omit<WatchedUpdate, 'watch'> {
  readonly root: HTMLElement
}

/** The fields beside the update: what a push can say of it. */
interface PushFields {
  readonly root: HTMLElement
  readonly query: () => Omit<PageInput<'pushUpdate'>['query'] & object, 'test'>
  readonly idempotencyKey: () => string
}

export function pushPanel({ api, clock }: PageContext, queue: BotQueueName): PushPanel {
  const result = statusLine('')
  result.root.id = 'push-result'
  const watched = watchedUpdate(queue, result.say)
  const update = element('textarea', { rows: 8, spellcheck: 'false' }, sampleUpdate(clock.nowMs()))
  const fields = pushFields()
  const push = async (): Promise<Message> => {
    watched.watch(undefined)
    result.say('Pushing…')
    const key = fields.idempotencyKey()
    const pushed = await api.call('pushUpdate', ofQueue(queue, fields.query()), {
      raw: update.value,
      headers: key === '' ? {} : { 'idempotency-key': key },
    })
    if (!('update_id' in pushed)) {
      return 'The bot does not want updates of this type: nothing was stored.'
    }
    const link = updateLink(queue, pushed.update_id)
    if (pushed.duplicate === true) return ['Update ', link, ' was stored before, with this key.']
    watched.watch(pushed.update_id)
    return ['Update ', link, ' is stored and waits for the bot.']
  }
  const pushButton = buttonElement('Push a test update', () => result.run(push), {
    style: 'primary',
  })
  return {
    root: cardElement(
      'Push a test update',
      element('label', {}, 'The update, without update_id', update),
      fields.root,
      element('p', { class: 'note' }, pushButton),
      result.root,
    ),
    ...watched,
  }
}

function pushFields(): PushFields {
  const key = element('input', { autocomplete: 'off', placeholder: 'derived from the update' })
  const ttl = element('input', {
    inputmode: 'numeric',
    autocomplete: 'off',
    placeholder: 'by the type of the update',
  })
  const idempotencyKey = element('input', { autocomplete: 'off', placeholder: 'none' })
  const checks = element('input', { type: 'checkbox' })
  checks.checked = true
  const root = element(
    'details',
    { class: 'options' },
    element('summary', {}, 'Options'),
    element(
      'div',
      { class: 'controls' },
      element('label', {}, 'Ordering key', key),
      element('label', {}, 'Seconds to live', ttl),
      element('label', {}, 'Idempotency key', idempotencyKey),
      element('label', { class: 'check' }, checks, 'Refuse what bot frameworks would fail on'),
    ),
  )
  return {
    root,
    query: () => ({
      ordering_key: key.value || undefined,
      // The server says what is wrong with a text that is no number.
      ttl: ttl.value === '' ? undefined : Number(ttl.value),
      validate: checks.checked ? ('telegram' as const) : undefined,
    }),
    idempotencyKey: () => idempotencyKey.value,
  }
}
