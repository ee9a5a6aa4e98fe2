/** How many bots need attention, wherever the page says so: on the first page, in the navigation and in the title. Pure. */
import { severities } from './bot-list.ts'
import { formatCount } from '../elements/format.ts'
import type { SummaryShape } from '../frame/shapes.ts'

/** A health that needs attention. */
export type Trouble = (typeof severities)[number]

/** What is known of all bots that the reader may see. */
export type TroubleSums = Pick<SummaryShape, 'bots' | 'paused' | 'conflicts' | 'dead_letters'> & {
  readonly health: Readonly<Record<Trouble, number>>
}

type Healths = Pick<TroubleSums, 'health'>

export function troubledOf({ health }: Healths): number {
  return severities.reduce((sum, state) => sum + health[state], 0)
}

/** Returns the states that have bots, the worst first. */
export function troubledStates({ health }: Healths): readonly Trouble[] {
  return severities.filter((state) => health[state] > 0)
}

/** For example `11 failing, 2 unpolled`. */
export function troubleSumsText({ health }: Healths): string {
  return troubledStates({ health })
    .map((state) => `${formatCount(health[state])} ${state}`)
    .join(', ')
}

/** Says that no health needs attention, and what does all the same. */
export function wellText(sums: Omit<TroubleSums, 'health'>): string {
  const { bots, paused, conflicts = 0, dead_letters: letters } = sums
  if (bots === 0) return 'No bot is registered yet.'
  const which = bots === 1 ? 'The bot is well' : `All ${formatCount(bots)} bots are well`
  const but = `No bot fails, but ${conflicts === 1 ? 'one is' : `${formatCount(conflicts)} are`} polled by two programs at once`
  const notes = [
    ...(paused > 0 ? [`${formatCount(paused)} paused`] : []),
    ...(letters > 0 ? [`${formatCount(letters)} dead letters wait for a decision`] : []),
  ]
  return `${[conflicts > 0 ? but : which, ...notes].join(', ')}.`
}
