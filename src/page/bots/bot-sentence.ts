/** Says how a queue is: whether it is well, since when, what waits, and what failed last. Pure. */
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
  const [first = '', ...others] = readableSeconds(facts.health_reason ?? '').split('; ')
  const more = [...others, waitingText(facts), failureText(facts, nowS)]
  return { lead: asSentence(first), more: more.map(asSentence).filter(Boolean).join(' ') }
}

/** The server counts in seconds, and an hour has many. */
export function readableSeconds(text: string): string {
  return text.replaceAll(/\b(\d{3,}) s\b/g, (_, seconds) => formatAge(Number(seconds)))
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
  if (error !== null && reason?.includes(error) === true) return ''
  return `the last failure was ${formatAgo(date, nowS)}${error === null ? '' : `: ${error}`}`
}

/** Makes a sentence of a text without a capital and an end. */
export function asSentence(text: string): string {
  if (text === '') return text
  const sentence = `${text.slice(0, 1).toUpperCase()}${text.slice(1)}`
  return /[.!?]$/.test(sentence) ? sentence : `${sentence}.`
}
