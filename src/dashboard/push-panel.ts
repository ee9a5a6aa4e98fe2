/** Pushes a test update and says how far it has come: stored, then delivered by the webhook or confirmed by a poll. */
import { durationText } from './attempts-panel.ts'
import { type BotQueueName, ofQueue } from './bot-queue-name.ts'
import { buttonElement, cardElement, element } from './element.ts'
import type { PageInput } from './page-calls.ts'
import type { PageContext } from './page-context.ts'
import type { Said } from './said.ts'
import type { AttemptShape } from './shapes.ts'
import { statusLine } from './status-line.ts'
import { updateLink } from './update-link.ts'

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

export interface PushPanel {
  readonly root: HTMLElement
  /** Whether an update is on its way, so that the attempts are of interest. */
  isWaiting(): boolean
  /** The bot has confirmed all updates below this id. */
  confirmedBelow(updateId: number): void
  /** The last attempts to deliver, newest first. */
  attempted(attempts: readonly AttemptShape[]): void
}

/** The fields beside the update: what a push can say of it. */
interface PushOptions {
  readonly root: HTMLElement
  readonly query: () => Omit<PageInput<'pushUpdate'>['query'] & object, 'test'>
  readonly idempotencyKey: () => string
}

export function pushPanel({ api, clock }: PageContext, queue: BotQueueName): PushPanel {
  /** The update that is on its way. */
  let watched: number | undefined
  const result = statusLine('')
  result.root.id = 'push-result'
  const update = element('textarea', { rows: 8, spellcheck: 'false' }, sampleUpdate(clock.nowMs()))
  const options = pushOptions()
  const push = async (): Promise<Said> => {
    watched = undefined
    result.say('Pushing…')
    const key = options.idempotencyKey()
    const pushed = await api.call('pushUpdate', ofQueue(queue, options.query()), {
      raw: update.value,
      headers: key === '' ? {} : { 'idempotency-key': key },
    })
    if (!('update_id' in pushed)) {
      return 'The bot does not want updates of this type: nothing was stored.'
    }
    const link = updateLink(queue, pushed.update_id)
    if (pushed.duplicate === true) return ['Update ', link, ' was stored before, with this key.']
    watched = pushed.update_id
    return ['Update ', link, ' is stored and waits for the bot.']
  }
  const pushButton = buttonElement('Push', () => result.run(push), { style: 'primary' })
  const say = (id: number, text: string): void =>
    result.say(['Update ', updateLink(queue, id), ` ${text}`])
  const arrived = (id: number, text: string): void => {
    watched = undefined
    say(id, text)
  }
  return {
    root: cardElement(
      'Push a test update',
      element('label', {}, 'The update, without update_id', update),
      options.root,
      element('p', { class: 'note' }, pushButton),
      result.root,
    ),
    isWaiting: () => watched !== undefined,
    confirmedBelow(updateId) {
      if (watched === undefined || watched >= updateId) return
      arrived(watched, 'was confirmed by the bot.')
    },
    attempted(attempts) {
      const attempt = attempts.find((each) => each.update_id === watched)
      if (watched === undefined || attempt === undefined) return
      if (attempt.error === null) {
        arrived(watched, `was delivered in ${durationText(attempt)}.`)
      } else say(watched, `is stored. Last attempt: ${attempt.error}.`)
    },
  }
}

function pushOptions(): PushOptions {
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
