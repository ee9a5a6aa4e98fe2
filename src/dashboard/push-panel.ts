/** Pushes a test update and says how far it has come: stored, then delivered by the webhook or confirmed by a poll. */
import { durationText } from './attempts-panel.ts'
import { type BotQueueName, ofQueue } from './bot-queue-name.ts'
import { buttonElement, cardElement, element } from './element.ts'
import type { PageContext } from './page-context.ts'
import type { AttemptShape } from './shapes.ts'
import { statusLine } from './status-line.ts'

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

export function pushPanel({ api, clock }: PageContext, queue: BotQueueName): PushPanel {
  /** The update that is on its way. */
  let watched: number | undefined
  const result = statusLine('')
  result.root.id = 'push-result'
  const update = element('textarea', { rows: 8, spellcheck: 'false' }, sampleUpdate(clock.nowMs()))
  const push = async (): Promise<string> => {
    watched = undefined
    result.say('Pushing…')
    const input = ofQueue(queue, { validate: 'telegram' as const })
    const pushed = await api.call('pushUpdate', input, update.value)
    if (!('update_id' in pushed)) {
      return 'The bot does not want updates of this type: nothing was stored.'
    }
    watched = pushed.update_id
    return `Update ${watched} is stored and waits for the bot.`
  }
  const pushButton = buttonElement('Push', () => result.run(push), { style: 'primary' })
  const arrived = (text: string): void => {
    watched = undefined
    result.say(text)
  }
  return {
    root: cardElement(
      'Push a test update',
      element('label', {}, 'The update, without update_id', update),
      element('p', { class: 'note' }, pushButton),
      result.root,
    ),
    isWaiting: () => watched !== undefined,
    confirmedBelow(updateId) {
      if (watched === undefined || watched >= updateId) return
      arrived(`Update ${watched} was confirmed by the bot.`)
    },
    attempted(attempts) {
      const attempt = attempts.find((each) => each.update_id === watched)
      if (watched === undefined || attempt === undefined) return
      if (attempt.error === null) {
        arrived(`Update ${watched} was delivered in ${durationText(attempt)}.`)
      } else result.say(`Update ${watched} is stored. Last attempt: ${attempt.error}.`)
    },
  }
}
