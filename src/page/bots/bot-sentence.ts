/** Says how a queue is: what is the case, whether it is well, since when, what waits, and what failed last. Pure. */
import { formatAge, formatAgo, formatCount } from '../elements/format.ts'
import type { QueueShape } from '../frame/shapes.ts'

type Facts = Pick<
  QueueShape,
  | 'mode'
  | 'health'
  | 'health_reason'
  | 'pending'
  | 'oldest_age'
  | 'last_error_date'
  | 'last_error_message'
>

export interface BotSentence {
  /** What is the case. */
  readonly lead: string
  /** What follows from it, or was before. */
  readonly more: string
}

/** @param nowS - Unix seconds */
export function botSentence(facts: Facts, nowS: number): BotSentence {
  const [first, ...others] = clausesOf(facts)
  const more = [...others, waitingText(facts), failureText(facts, nowS)]
  return { lead: asSentence(first ?? ''), more: more.map(asSentence).filter(Boolean).join(' ') }
}

/** The clauses of the server's sentence. The first one is the cause. */
function clausesOf({ health_reason: reason }: Pick<Facts, 'health_reason'>): readonly string[] {
  return (reason ?? '').split('; ')
}

/** A list shows so many clauses after the cause. Chosen: they fit into a line or two, and the page of the bot has all of them. */
const factsShownMax = 2

/** Says what is wrong in as few words as a list has room for: the cause, and below it the facts, such as `44 failures in 10 min, 4 chats wait`. */
export function troubleText(facts: Pick<Facts, 'health_reason'>): BotSentence {
  const [cause = '', ...others] = clausesOf(facts)
  const more = others.slice(0, factsShownMax).join(', ')
  return { lead: asSentence(cause).replace(/\.$/, ''), more }
}

function waitingText({ pending, oldest_age: age, health_reason: reason }: Facts): string {
  if (pending === 0) return 'nothing waits'
  if (/ updates? waits?/.test(reason ?? '')) return ''
  const what = pending === 1 ? '1 update waits' : `${formatCount(pending)} updates wait`
  return age === null ? what : `${what}, the oldest for ${formatAge(age)}`
}

function failureText(facts: Facts, nowS: number): string {
  const { mode, health_reason: reason, last_error_date: date, last_error_message: error } = facts
  if (mode !== 'webhook') return ''
  if (date === null) return 'no failure is known'
  // Of a failing webhook, the reason says it.
  const said = error?.replace('Wrong response from the webhook: ', '')
  if (said !== undefined && reason?.includes(said) === true) return ''
  return `the last failure was ${formatAgo(date, nowS)}${error === null ? '' : `: ${error}`}`
}

/** Makes a sentence of a text without a capital and an end. */
export function asSentence(text: string): string {
  if (text === '') return text
  const sentence = `${text.slice(0, 1).toUpperCase()}${text.slice(1)}`
  return /[.!?]$/.test(sentence) ? sentence : `${sentence}.`
}
