/** What commands say to do next about bots in trouble. Pure. */
import {
  troubleAdvice,
  type TroubleCause,
  troubleCauseOf,
  troubleCommand,
} from '../delivery/trouble-advice.ts'
import { counted } from '../kit/text/counted.ts'

interface Facts {
  readonly health: string | null
  readonly health_reason?: string | null | undefined
}

interface ListedBot extends Facts {
  readonly bot_id: number
  readonly username: string
}

/** A list advises on so many causes, those of the worst bots. Chosen: with their commands, they fit the lowest terminal. */
const causesAdvisedMax = 5

/**
 * Returns what to do about one bot, under its state.
 *
 * @param queue - its id, and `--test` for its /test/ queue
 */
export function nextSteps(facts: Facts, queue: string): readonly string[] {
  const cause = causeOf(facts)
  if (cause === undefined) return []
  const command = troubleCommand(cause, queue)
  const isShown = command.startsWith('postbote bots show')
  return ['', `next: ${troubleAdvice(cause)}`, ...(isShown ? [] : [command])]
}

/** Returns what to do about the bots of a list, once for each cause. */
export function nextStepsOfAll(bots: readonly ListedBot[]): readonly string[] {
  const byCause = new Map<TroubleCause, ListedBot[]>()
  for (const bot of bots) {
    const cause = causeOf(bot)
    if (cause !== undefined) byCause.set(cause, [...(byCause.get(cause) ?? []), bot])
  }
  const left = byCause.size - causesAdvisedMax
  const rest = left <= 0 ? [] : [`${counted(left, 'other cause')}: postbote bots show ID`]
  const advised = [...byCause].slice(0, causesAdvisedMax).flatMap(([cause, [first, ...others]]) => {
    if (first === undefined) return []
    const more = others.length === 0 ? '' : ` and ${counted(others.length, 'other')}`
    return [
      `next for @${first.username}${more}: ${troubleAdvice(cause)}`,
      troubleCommand(cause, `${first.bot_id}`),
    ]
  })
  return [...advised, ...rest]
}

function causeOf({ health, health_reason: reason }: Facts): TroubleCause | undefined {
  return troubleCauseOf(health, reason ?? '')
}
