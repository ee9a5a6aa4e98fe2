/** Pushes a test update and says how far it has come: stored, then delivered by the webhook or confirmed by a poll. */
import { callForm } from '../elements/call-form.ts'
import { checkField, fieldElement, textField } from '../elements/fields.ts'
import { focusable } from '../frame/focus-query.ts'
import { actLabels } from '../frame/act-labels.ts'
import { cardElement, element } from '../elements/element.ts'
import { type BotQueueName, ofQueue, type PageInput } from '../frame/page-calls.ts'
import type { PageContext } from '../frame/page-context.ts'
import { type Message, statusLine } from '../elements/messages.ts'
import { updateLink } from '../elements/page-part.ts'
import { placeText } from '../../api/place-text.ts'
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
  const fields = { name: 'update', rows: 8, spellcheck: 'false' }
  const update = focusable(element('textarea', fields, sampleUpdate(clock.nowMs())), 'push')
  const more = pushFields()
  const push = async (): Promise<Message> => {
    watched.watch(undefined)
    result.say('Pushing…')
    const key = more.idempotencyKey()
    const pushed = await api.call('pushUpdate', ofQueue(queue, more.query()), {
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
  const send = async (): Promise<string> => {
    try {
      result.say(await push())
      return ''
    } catch (error) {
      result.say('')
      throw error instanceof Error ? new Error(placeText(error.message, update.value)) : error
    }
  }
  const form = callForm(
    { submit: actLabels.pushUpdate, send, kind: 'makes' },
    fieldElement('The update, without update_id', update, { isWide: true }),
    more.root,
  )
  return { root: cardElement(actLabels.pushUpdate, form.root, result.root), ...watched }
}

function pushFields(): PushFields {
  const key = textField('ordering_key', 'derived from the update')
  const ttl = textField('ttl', 'by the type of the update', 'numeric')
  const idempotencyKey = textField('idempotency_key', 'none')
  const checks = checkField('validate', 'Refuse what bot frameworks would fail on')
  checks.input.checked = true
  const root = element(
    'details',
    { class: 'options whole' },
    element('summary', {}, 'Options'),
    element(
      'div',
      { class: 'fields' },
      fieldElement('Ordering key', key),
      fieldElement('Seconds to live', ttl),
      fieldElement('Idempotency key', idempotencyKey),
      checks.root,
    ),
  )
  return {
    root,
    query: () => ({
      ordering_key: key.value || undefined,
      ttl: secondsIn(ttl.value),
      validate: checks.input.checked ? ('telegram' as const) : undefined,
    }),
    idempotencyKey: () => idempotencyKey.value,
  }
}

/** A text that is no number cannot be sent as one, so it is refused here. */
function secondsIn(text: string): number | undefined {
  if (text === '') return undefined
  if (Number.isNaN(Number(text))) {
    throw new Error(`ttl: expected a whole number of seconds, got "${text}"`)
  }
  return Number(text)
}
