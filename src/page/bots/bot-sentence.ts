/** Says how a queue is: what is the case, whether it is well, since when, what waits, and what failed last. Pure. */
import { asSentence, formatAge, formatAgo, formatCount, isLate } from '../elements/format.ts'
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
  /** Set if the word for the queue is none of trouble, and an update has waited for too long. */
  readonly isLate?: boolean
}

/** @param nowS - Unix seconds */
export function botSentence(facts: Facts, nowS: number): BotSentence {
  const clauses = [...clausesOf(facts), waitingText(facts)]
  const isTooLate = (facts.health ?? 'healthy') === 'healthy' && isLate(facts.oldest_age)
  // What is the case is that, and no success of the past.
  if (isTooLate) clauses.sort((a, b) => Number(saysPending(b)) - Number(saysPending(a)))
  const [lead = '', ...others] = clauses
  const more = [...others, failureText(facts, nowS)].map(asSentence).filter(Boolean).join(' ')
  return { lead: asSentence(lead), more, ...(isTooLate ? { isLate: true } : {}) }
}

/** The clauses of the server's sentence. The first one is the cause. */
function clausesOf({ health_reason: reason }: Pick<Facts, 'health_reason'>): readonly string[] {
  return (reason ?? '').split('; ')
}

/** A list shows so many clauses after the cause. Chosen: they fit into a line or two, and the page of the bot has all of them. */
const factsShownMax = 2

/** Says what is wrong in as few words as a list has room for: the cause, and below it the facts, such as `44 failures in 10 min, 4 chats wait`. */
export function troubleText(state: Pick<Facts, 'health_reason'>): BotSentence {
  const [cause = '', ...others] = clausesOf(state)
  const facts = others.filter((clause) => !saysPending(clause)).map(withoutNextAttempt)
  const more = facts.filter(Boolean).slice(0, factsShownMax).join(', ')
  return { lead: asSentence(cause).replace(/\.$/, ''), more }
}

/** A list is older than the page of the bot, which counts the seconds. */
function withoutNextAttempt(clause: string): string {
  const facts = clause.split(', ').filter((fact) => !fact.startsWith('next attempt'))
  return facts.join(', ')
}

/** Whether it says how many updates wait, which lists have as a number. */
function saysPending(text: string): boolean {
  return / updates? waits?/.test(text)
}

function waitingText({ pending, oldest_age: age, health_reason: reason }: Facts): string {
  if (pending === 0) return 'nothing waits'
  if (saysPending(reason ?? '')) return ''
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
