/** An update that was pushed from the page: says what becomes of it. */
import { durationText } from '../bot/attempts-panel.ts'
import type { BotQueueName } from '../frame/page-calls.ts'
import type { Message } from '../elements/messages.ts'
import type { AttemptShape } from '../frame/shapes.ts'
import { updateLink } from '../elements/page-part.ts'

export interface WatchedUpdate {
  /** Watches this update, and no other; undefined: none. */
  readonly watch: (updateId: number | undefined) => void
  /** Whether an update is on its way, so that the attempts are of interest. */
  readonly isWaiting: () => boolean
  /** The bot has confirmed all updates below this id. */
  readonly confirmedBelow: (updateId: number) => void
  /** The last attempts to deliver, newest first. */
  readonly attempted: (attempts: readonly AttemptShape[]) => void
}

export function watchedUpdate(
  queue: BotQueueName,
  sayIt: (message: Message) => void,
): WatchedUpdate {
  let watched: number | undefined
  const say = (id: number, text: string): void =>
    sayIt(['Update ', updateLink(queue, id), ` ${text}`])
  const arrived = (id: number, text: string): void => {
    watched = undefined
    say(id, text)
  }
  return {
    watch(updateId) {
      watched = updateId
    },
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
