/**
 * Bots in trouble, by what causes it: many bots with one cause are one line, because one repair helps all of them. Pure.
 */
import { troubleText } from './bot-sentence.ts'
import { severities } from './bot-list.ts'
import { asSentence, formatCount } from '../elements/format.ts'
import type { ListedBotShape } from '../frame/shapes.ts'
import type { Trouble } from './trouble-sums.ts'

/** The bots of a state that were read, the ones with the oldest updates first. */
export interface TroubledBots {
  readonly state: Trouble
  readonly bots: readonly ListedBotShape[]
  /** Whether the state has more bots than were read. */
  readonly isCut: boolean
}

/** A cause, and the bots that have it. */
export interface TroubleCause {
  /** The same while the cause has the same bot, or more than one. */
  readonly key: string
  readonly state: Trouble
  /** What is wrong, without an end. */
  readonly lead: string
  readonly more: string
  /** At least one; that with the oldest update first. */
  readonly bots: readonly ListedBotShape[]
  readonly host: string | undefined
}

/** Returns the causes: those of the worst state first, and of these the one with the most bots. */
export function troubleCauses(troubled: readonly TroubledBots[]): readonly TroubleCause[] {
  return troubled
    .toSorted((a, b) => severities.indexOf(a.state) - severities.indexOf(b.state))
    .flatMap((ofState) => causesOfState(ofState))
}

function causesOfState({ state, bots, isCut }: TroubledBots): readonly TroubleCause[] {
  const groups = new Map<string, ListedBotShape[]>()
  for (const bot of bots) {
    const key = `${state} ${hostOf(bot) ?? ''} ${kindOf(leadOf(bot))}`
    const group = groups.get(key)
    if (group === undefined) groups.set(key, [bot])
    else group.push(bot)
  }
  return [...groups]
    .map(([key, group]) => causeOf({ key, state, isCut }, group))
    .toSorted((a, b) => b.bots.length - a.bots.length)
}

function causeOf(
  { key, state, isCut }: Pick<TroubleCause, 'key' | 'state'> & Pick<TroubledBots, 'isCut'>,
  bots: readonly ListedBotShape[],
): TroubleCause {
  const [worst] = bots
  const host = worst && hostOf(worst)
  const { lead, more } = troubleText({ health_reason: worst?.health_reason ?? null })
  const said = lead === '' ? asSentence(state).slice(0, -1) : lead
  if (bots.length === 1) return { key: `${worst?.bot_id}`, state, lead: said, more, bots, host }
  const isSame = new Set(bots.map(leadOf)).size === 1
  const count = `${isCut ? 'at least ' : ''}${formatCount(bots.length)} bots`
  return {
    key,
    state,
    lead: said,
    more: `${isSame ? '' : 'the worst of '}${count}`,
    bots,
    host,
  }
}

function hostOf({ webhook_host: host }: ListedBotShape): string | undefined {
  return host ?? undefined
}

function leadOf({ health_reason: reason }: ListedBotShape): string {
  return troubleText({ health_reason: reason ?? null }).lead
}

/** Two bots that are late have one trouble, though one is later than the other. */
function kindOf(lead: string): string {
  const words = lead.replace(', and get later', '').split(' ')
  return words.filter((word, nth) => !isUnit(word) && !isUnit(words[nth + 1])).join(' ')
}

function isUnit(word: string | undefined): boolean {
  return word !== undefined && ['s', 'min', 'h', 'd'].includes(word)
}
