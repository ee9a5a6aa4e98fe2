/**
 * Summarizes the state of a queue in one word and one sentence for its operator. The first clause of the sentence is the cause, for
 * a reader who reads no further. With a webhook:
 *
 *     paused     by the operator: nothing is sent
 *     failing    nothing has succeeded for several attempts
 *     degraded   some recent attempts have failed, ordering keys wait for a retry and others succeed, the endpoint does not
 *                respond, or a module says that something else is wrong with the bot
 *     behind     the oldest update has waited for minutes, and the queue does not catch up, though nothing fails; or for half an hour
 *     healthy    anything else, including a webhook without any attempt
 *
 * Without a webhook:
 *
 *     unpolled   updates wait, or have expired within the hour, and nobody has called getUpdates for a minute
 *     degraded   polls get the same updates for minutes and confirm none, two programs have polled at the same time for a minute,
 *                updates expire though they are polled, or a module says that something else is wrong
 *     behind     as with a webhook, though somebody polls
 *     (no word)  anything else
 *
 * All that shows a health, or counts or reports it, decides by this file. Pure: it computes the verdict from the facts and
 * the time it is passed.
 */
import { utcText } from '../../kit/clock.ts'
import type { Health } from '../../kit/states.ts'
import { counted, grouped } from '../../kit/text/counted.ts'
import { webhookFailingMin } from '../limits.ts'
import { causeOfFailure } from './failure.ts'
import type { AttemptLog, RecentAttempts } from './attempt-log.ts'

/** What a dispatcher waits for. */
export interface Waiting {
  /** The number of ordering keys whose first update has failed and will be tried again. */
  readonly parkedKeys: number
  /** How many of them are the keys of chats and of users; absent if nobody has looked. */
  readonly parkedSubjects?: ParkedSubjects | undefined
  /** Wall time of the next attempt; undefined if no time is known. */
  readonly nextAttemptMs: number | undefined
  /** How long the oldest delivery in progress has waited for its response; undefined if there is none. */
  readonly unansweredMs: number | undefined
  /** The pace of the endpoint (endpoint-pace.ts) in attempts per second; undefined while it is open. */
  readonly endpointPerSecond: number | undefined
}

/** How many ordering keys are those of chats, and how many those of users. Others are what a producer or a module says. */
export interface ParkedSubjects {
  readonly chats: number
  readonly users: number
}

/** How late the updates of a queue are: later and later, or minutes for minutes, or half an hour though it gets better (features/fleet/falling-behind.ts). */
export type Lateness = 'growing' | 'late'

/** What is known of the getUpdates calls of a queue. */
export interface Polls {
  readonly isWaiting: boolean
  /** How long ago the last one began, or ended if it has waited, also before the worker was started; undefined if none is known. */
  readonly lastBeforeMs: number | undefined
  /** How far back all of them are known: to the start of the worker. */
  readonly knownForMs: number
  /** Two programs that poll at the same time; undefined if there are none. */
  readonly fight?: PollFight | undefined
  /** Updates that polls get again and again; undefined if there are none. */
  readonly repeated?: RepeatedPage | undefined
  /** Updates that expire though somebody polls; undefined if there are none. */
  readonly expiring?: ExpiringUpdates | undefined
}

/** Updates that have expired, some soon after the others. */
export interface ExpiringUpdates {
  readonly count: number
  /** From the first to the last of them, in milliseconds. */
  readonly forMs: number
}

/** How often the polls of two programs have met. */
export interface PollFight {
  /** Whether the polls of one program end with 409, or with an empty list because the other's take over. */
  readonly kind: 'refusal' | 'takeover'
  /** From the first to the last time, in milliseconds. */
  readonly forMs: number
  /** How often in the last minute, up to 100. */
  readonly lastMinute: number
}

/** Updates that polls have got more than once. */
export interface RepeatedPage {
  readonly times: number
  /** How long ago polls got them for the first time, and for the last, in milliseconds. */
  readonly firstBeforeMs: number
  readonly lastBeforeMs: number
}

/** What the word alone depends on. */
export interface HealthWordFacts {
  readonly hasWebhook: boolean
  readonly isPaused: boolean
  readonly pendingCount: number
  /** Undefined if nothing was tried since the process began. */
  readonly log: AttemptLog | undefined
  readonly waiting: Pick<Waiting, 'parkedKeys' | 'unansweredMs'>
  readonly polls: Polls
  /** What else is wrong with the bot, as clauses. */
  readonly troubles?: readonly string[]
  /** Undefined if the oldest update is not old, or if its age is not known. */
  readonly lateness?: Lateness | undefined
  /** Wall time in milliseconds. */
  readonly nowMs: number
}

/** Everything the verdict depends on. */
export interface HealthFacts extends HealthWordFacts {
  readonly waiting: Waiting
  /** The operator's limit of deliveries per second; undefined without one. */
  readonly limitPerSecond: number | undefined
  /** The age of the oldest pending update; undefined if it is not known. */
  readonly oldestAgeS: number | undefined
  /** What the bot gets wrong in silence; sentences without their ends. */
  readonly notes: readonly string[]
}

/** The verdict: a word, and a sentence with numbers and the last error. */
export interface HealthReport {
  /** Undefined for a queue without a webhook that is polled, or has nothing to take. */
  readonly health: Health | undefined
  readonly reason: string
}

/** Returns the state of a queue. */
export function healthOf(facts: HealthFacts): HealthReport {
  const { troubles = [], notes } = facts
  const word = wordOf(facts)
  const own = sentenceOf(word, facts)
  const clauses = isFine(word) ? [...troubles, own] : [own, ...troubles]
  return { health: healthWord(facts), reason: [...clauses, ...notes].join('; ') }
}

function isFine(word: Health | undefined): boolean {
  return word === undefined || word === 'healthy'
}

function sentenceOf(health: Health | undefined, facts: HealthFacts): string {
  if (!facts.hasWebhook) return pollsReason(facts)
  if (health === 'paused') return pausedReason(facts)
  const behind = health === 'behind' ? `${latenessText(facts)}; ` : ''
  return behind + reasonOf(health, facts) + waitingText(facts) + paceText(health, facts)
}

/**
 * Returns the word alone, for questions about thousands of queues: the sentence takes ten times as long. A webhook is
 * `failing` from 3 consecutive failures on; failures of the last 15 minutes make it `degraded`.
 */
export function healthWord(facts: HealthWordFacts): Health | undefined {
  const word = wordOf(facts)
  return isFine(word) && hasTroubles(facts) ? 'degraded' : word
}

function hasTroubles({ troubles = [] }: HealthWordFacts): boolean {
  return troubles.length > 0
}

/** Returns the word for what the queue does itself. */
function wordOf(facts: HealthWordFacts): Health | undefined {
  const { hasWebhook, isPaused, log, waiting, nowMs } = facts
  if (!hasWebhook) return pollsWord(facts)
  if (isPaused) return 'paused'
  if (isFailing(log)) return 'failing'
  if (waiting.parkedKeys > 0 || isSilent(facts)) return 'degraded'
  if (log !== undefined && (log.failuresInRow > 0 || log.recent(nowMs).failures > 0)) {
    return 'degraded'
  }
  return facts.lateness === undefined ? 'healthy' : 'behind'
}

/** Whether the attempts say that a webhook fails. */
export function isFailing(log: Pick<AttemptLog, 'failuresInRow'> | undefined): boolean {
  return (log?.failuresInRow ?? 0) >= webhookFailingMin
}

/**
 * An endpoint that has taken nothing while a delivery has waited this long for its response does not respond. Chosen: few
 * endpoints need so long, and an operator sees it 50 s before the attempt fails.
 */
const webhookSilentMs = 10_000

/** Whether the endpoint has taken nothing for some time, because it does not respond. It fails only after a minute. */
function isSilent({ waiting: { unansweredMs = 0 }, log, nowMs }: HealthWordFacts): boolean {
  if (unansweredMs < webhookSilentMs) return false
  return (log?.lastSuccessMs ?? Number.NEGATIVE_INFINITY) < nowMs - unansweredMs
}

/** Nobody polls a queue if the last call was longer ago. Chosen: bots poll again within seconds, and a poll waits up to 50 s. */
export const unpolledAfterMs = 60_000

/** Two programs that poll at the same time are a fault only after this. Chosen: a rolling deployment is over by then. */
const foughtAfterMs = 60_000

/**
 * Polls that get the same updates are a fault after this time and as many polls. Chosen: a program that crashes on an update and is
 * started again may succeed the third time, and one that keeps its offset to itself for a moment has confirmed by then.
 */
const repeatedAfterMs = 5 * 60_000
const repeatedTimesMin = 3
/** If the last of them is longer ago, the program works on them, or it is gone, which is another fault. */
const repeatedWithinMs = 2 * 60_000

/**
 * Updates that expire are a fault of who polls only after this. Chosen: a bot that was off needs some time for what has become old
 * meanwhile.
 */
const expiringAfterMs = 5 * 60_000

function pollsWord(facts: HealthWordFacts): Health | undefined {
  if (isUnpolled(facts)) return 'unpolled'
  const { fight, repeated, expiring } = facts.polls
  const isFought = fight !== undefined && fight.forMs >= foughtAfterMs
  if (isFought || isRepeating(repeated) || isExpiring(expiring)) return 'degraded'
  return facts.lateness === undefined ? undefined : 'behind'
}

function isExpiring(expiring: ExpiringUpdates | undefined): expiring is ExpiringUpdates {
  return expiring !== undefined && expiring.forMs >= expiringAfterMs
}

function isRepeating(repeated: RepeatedPage | undefined): repeated is RepeatedPage {
  if (repeated === undefined || repeated.times < repeatedTimesMin) return false
  return repeated.firstBeforeMs >= repeatedAfterMs && repeated.lastBeforeMs <= repeatedWithinMs
}

/** What has expired unfetched waits no more, and is missed for so long. */
const missedForMs = 60 * 60_000

function isUnpolled({ pendingCount, polls, log, nowMs }: HealthWordFacts): boolean {
  const { isWaiting, lastBeforeMs, knownForMs } = polls
  const isMissed = nowMs - (log?.lastExpiredMs ?? Number.NEGATIVE_INFINITY) < missedForMs
  // Nobody could poll a server that was down.
  const sinceMs = Math.min(lastBeforeMs ?? knownForMs, knownForMs)
  return (pendingCount > 0 || isMissed) && !isWaiting && sinceMs > unpolledAfterMs
}

/** For example `nobody polls; last polled 3 h ago; 11,008 updates wait, the oldest for 3 h`. */
function pollsReason(facts: HealthFacts): string {
  const { polls, pendingCount, oldestAgeS } = facts
  const word = pollsWord(facts)
  const what = [
    ...(word === 'unpolled' ? ['nobody polls'] : []),
    ...fightText(polls),
    ...repeatedText(facts),
    ...expiringText(polls),
    ...(word === 'behind' ? [latenessText(facts)] : []),
    pollsText(polls),
  ]
  if (pendingCount > 0) {
    const oldest = oldestAgeS === undefined ? '' : `, the oldest for ${duration(oldestAgeS)}`
    what.push(thatWait(pendingCount, 'update') + oldest)
  } else if (word === 'unpolled') what.push(expiredText(facts))
  return what.join('; ')
}

/** For example `updates expire before polls get them; 1,200 in 12 min`. */
function expiringText({ expiring }: Polls): readonly string[] {
  if (!isExpiring(expiring)) return []
  const { count, forMs } = expiring
  return ['updates expire before polls get them', `${grouped(count)} in ${duration(forMs / 1_000)}`]
}

function expiredText({ log, nowMs }: HealthFacts): string {
  return `the last update expired ${duration((nowMs - (log?.lastExpiredMs ?? nowMs)) / 1_000)} ago`
}

function fightText({ fight }: Polls): readonly string[] {
  if (fight === undefined) return []
  const { kind, lastMinute } = fight
  return ['two clients poll at once', `${counted(lastMinute, kind)} in the last minute`]
}

/** For example `polls confirm nothing; they get the same updates since 14:02 UTC`. */
function repeatedText({ polls: { repeated }, nowMs }: HealthFacts): readonly string[] {
  if (!isRepeating(repeated)) return []
  const since = utcText(nowMs - repeated.firstBeforeMs)
  const isToday = repeated.firstBeforeMs < dayMs
  return [
    'polls confirm nothing',
    `they get the same updates since ${since.slice(isToday ? 11 : 0, 16)} UTC`,
  ]
}

const dayMs = 86_400_000

function pollsText({ isWaiting, lastBeforeMs, knownForMs }: Polls): string {
  if (isWaiting) return 'a getUpdates call waits'
  if (lastBeforeMs === undefined) return `no poll since the start ${ago(knownForMs)}`
  return `last polled ${ago(lastBeforeMs)}`
}

/** Returns the reason without what the webhook waits for. */
function reasonOf(health: Health | undefined, facts: HealthFacts): string {
  const { log } = facts
  if (isSilent(facts) && health === 'degraded') return 'endpoint does not respond'
  if (log === undefined) return untriedReason(facts)
  if (health === 'failing') return failingReason(facts, log)
  const { attempts, failures, refusals } = log.recent(facts.nowMs)
  if (health === 'degraded') return degradedReason(log, { attempts, failures })
  if (refusals > 0) {
    return `the endpoint has refused ${refusals} of the last ${counted(attempts, 'update')} for good`
  }
  if (attempts > 0) {
    const what =
      attempts === 1 ? 'the last attempt' : `all of the last ${counted(attempts, 'attempt')}`
    return `${what} succeeded`
  }
  const { lastSuccessMs } = log
  return lastSuccessMs === undefined
    ? untriedReason(facts)
    : `no response since the last success ${ago(facts.nowMs - lastSuccessMs)}`
}

function untriedReason({ waiting: { unansweredMs } }: HealthFacts): string {
  return unansweredMs === undefined ? 'nothing was sent yet' : 'no response yet'
}

function pausedReason({ pendingCount }: HealthFacts): string {
  const what = 'paused by the operator'
  return pendingCount === 0 ? what : `${what}; ${thatWait(pendingCount, 'update')}`
}

/** For example `endpoint answered 502 Bad Gateway; 2 of the last 20 attempts failed`. */
function degradedReason(
  log: AttemptLog,
  { attempts, failures }: Pick<RecentAttempts, 'attempts' | 'failures'>,
): string {
  const what =
    failures > 0
      ? `${failures} of the last ${counted(attempts, 'attempt')} failed`
      : log.failuresInRow > 0
        ? 'the last attempt failed'
        : 'others succeed'
  return `${causeOf(log)}; ${what}`
}

/** For example `endpoint answers 502 Bad Gateway; 17 failures in 13 min, the last success 14 min ago; 3 chats wait`. */
function failingReason({ nowMs }: HealthFacts, log: AttemptLog): string {
  const { lastSuccessMs, failuresInRow, failingSinceMs = nowMs } = log
  const failures = counted(failuresInRow, 'failure')
  const before =
    lastSuccessMs === undefined
      ? 'no success yet'
      : `the last success ${ago(nowMs - lastSuccessMs)}`
  const inS = duration(Math.max(nowMs - failingSinceMs, 0) / 1_000)
  return `${causeOf(log)}; ${log.areFailuresAtLeast ? 'at least ' : ''}${failures} in ${inS}, ${before}`
}

function causeOf({ lastError, failuresInRow }: AttemptLog): string {
  if (lastError === undefined) return 'deliveries fail'
  return causeOfFailure(lastError, failuresInRow > 0 ? 'answers' : 'answered')
}

function waitingText({ waiting, nowMs }: HealthFacts): string {
  const { nextAttemptMs, unansweredMs = 0 } = waiting
  const waits = [...parkedText(waiting)]
  const unansweredS = Math.floor(unansweredMs / 1_000)
  if (unansweredS > 0) waits.push(`a delivery has had no response for ${duration(unansweredS)}`)
  if (nextAttemptMs !== undefined) {
    const seconds = Math.max(Math.ceil((nextAttemptMs - nowMs) / 1_000), 0)
    waits.push(seconds === 0 ? 'next attempt now' : `next attempt in ${duration(seconds)}`)
  }
  return waits.length === 0 ? '' : `; ${waits.join(', ')}`
}

/** For example `4 chats wait` or `1 chat and 2 other keys wait`. */
function parkedText({ parkedKeys, parkedSubjects }: Waiting): readonly string[] {
  if (parkedKeys === 0) return []
  const { chats, users } = parkedSubjects ?? { chats: 0, users: 0 }
  const named = [
    ...(chats > 0 ? [counted(chats, 'chat')] : []),
    ...(users > 0 ? [counted(users, 'user')] : []),
  ]
  const others = parkedKeys - chats - users
  if (others > 0) named.push(counted(others, named.length > 0 ? 'other key' : 'key'))
  return [`${named.join(' and ')} ${parkedKeys === 1 ? 'waits' : 'wait'}`]
}

/** For example `updates are 29 min late, and get later; 1,200 updates wait`. */
function latenessText({ oldestAgeS, pendingCount, lateness, hasWebhook }: HealthFacts): string {
  const age = oldestAgeS === undefined ? '' : `${duration(oldestAgeS)} `
  const late = `updates are ${age}late${lateness === 'growing' ? ', and get later' : ''}`
  // The clause about polls has it.
  return hasWebhook ? `${late}; ${thatWait(pendingCount, 'update')}` : late
}

/** For example `; limited to 5 deliveries a second by the operator; 1,200 updates wait`. */
function paceText(
  health: Health | undefined,
  { limitPerSecond, waiting: { endpointPerSecond }, pendingCount }: HealthFacts,
): string {
  const paces: string[] = []
  if (limitPerSecond !== undefined) {
    paces.push(`limited to ${perSecond(limitPerSecond)} by the operator`)
  }
  if (endpointPerSecond !== undefined) {
    const what = health === 'failing' ? 'slowed down to' : 'recovering with'
    const rate = perSecond(Math.max(Math.round(endpointPerSecond), 1))
    paces.push(`${what} ${rate} at present`)
  }
  if (paces.length > 0 && pendingCount > 0) paces.push(thatWait(pendingCount, 'update'))
  return paces.map((pace) => `; ${pace}`).join('')
}

function perSecond(rate: number): string {
  return `${counted(rate, 'delivery', 'deliveries')} a second`
}

/** A wall clock that was set back causes no negative times. */
function ago(ms: number): string {
  return `${duration(Math.max(Math.round(ms / 1_000), 0))} ago`
}

/** For example `42 s`, `3 min`, `5 h` or `2 d`. */
function duration(seconds: number): string {
  const [unit, name] = units.find(([size]) => seconds >= 2 * size) ?? [1, 's']
  return `${Math.floor(seconds / unit)} ${name}`
}

const units = [
  [86_400, 'd'],
  [3_600, 'h'],
  [60, 'min'],
] as const

function thatWait(count: number, what: string): string {
  return `${counted(count, what)} ${count === 1 ? 'waits' : 'wait'}`
}
