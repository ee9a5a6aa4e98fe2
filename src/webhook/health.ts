/**
 * Summarizes the state of a webhook in one word and one sentence for its operator.
 *
 *     paused     by the operator: nothing is sent
 *     failing    nothing has succeeded for several attempts
 *     degraded   some recent attempts have failed, or ordering keys wait for a retry, and others succeed
 *     healthy    anything else, including a webhook without any attempt
 *
 * Pure: it computes the verdict from the facts and the time it is passed.
 */

import { webhookFailingMin } from './limits.ts'
import type { AttemptLog } from './attempt-log.ts'

/** The state of a webhook in one word. */
export type Health = 'healthy' | 'degraded' | 'failing' | 'paused'

/** What a dispatcher waits for. */
export interface Waiting {
  /** The number of ordering keys whose first update has failed and will be tried again. */
  readonly parkedKeys: number
  /** Wall time of the next attempt; undefined if no time is known. */
  readonly nextAttemptMs: number | undefined
  /** How long the oldest delivery in progress has waited for its response; undefined if there is none. */
  readonly unansweredMs: number | undefined
  /** The pace of the endpoint (endpoint-pace.ts) in attempts per second; undefined while it is open. */
  readonly endpointPerSecond: number | undefined
}

/** Everything the verdict depends on. */
export interface HealthFacts extends Waiting {
  readonly isPaused: boolean
  /** The operator's limit of deliveries per second; undefined without one. */
  readonly limitPerSecond: number | undefined
  readonly pendingCount: number
  /** Undefined if nothing was tried since the process began. */
  readonly log: AttemptLog | undefined
  /** Wall time in milliseconds. */
  readonly nowMs: number
}

/** The verdict: a word, and a sentence with numbers and the last error. */
export interface HealthReport {
  readonly health: Health
  readonly reason: string
}

/**
 * Returns the state of a webhook. It is `failing` from 3 consecutive failures on; failures of the last 15 minutes make it
 * `degraded`.
 */
export function healthOf(facts: HealthFacts): HealthReport {
  const health = healthWord(facts)
  if (health === 'paused') return { health, reason: pausedReason(facts) }
  return { health, reason: reasonOf(health, facts) + waitingText(facts) + paceText(health, facts) }
}

/** Returns the word alone, for questions about thousands of webhooks: the sentence takes ten times as long. */
export function healthWord({
  isPaused,
  log,
  parkedKeys,
  nowMs,
}: Pick<HealthFacts, 'isPaused' | 'log' | 'parkedKeys' | 'nowMs'>): Health {
  if (isPaused) return 'paused'
  if (log === undefined) return 'healthy'
  if (log.failuresInRow >= webhookFailingMin) return 'failing'
  const isDegraded = log.failuresInRow > 0 || parkedKeys > 0 || log.recent(nowMs).failures > 0
  return isDegraded ? 'degraded' : 'healthy'
}

/** Returns the reason without what the webhook waits for. */
function reasonOf(health: Health, facts: HealthFacts): string {
  const { log } = facts
  if (log === undefined) return untriedReason(facts)
  if (health === 'failing') return failingReason(facts, log)
  const { attempts, failures } = log.recent(facts.nowMs)
  if (health === 'degraded') return degradedReason(facts, { log, attempts, failures })
  if (attempts > 0) {
    const what =
      attempts === 1 ? 'the last attempt' : `all of the last ${counted(attempts, 'attempt')}`
    return `${what} succeeded`
  }
  const { lastSuccessMs } = log
  return lastSuccessMs === undefined
    ? untriedReason(facts)
    : `no response since the last success ${secondsSince(lastSuccessMs, facts)} s ago`
}

function untriedReason({ unansweredMs }: HealthFacts): string {
  return unansweredMs === undefined ? 'nothing was sent yet' : 'no response yet'
}

function pausedReason({ pendingCount }: HealthFacts): string {
  const what = 'paused by the operator'
  return pendingCount === 0 ? what : `${what}; ${thatWait(pendingCount, 'update')}`
}

function degradedReason(
  facts: HealthFacts,
  recent: { readonly log: AttemptLog; readonly attempts: number; readonly failures: number },
): string {
  const { log, attempts, failures } = recent
  const { parkedKeys } = facts
  const what =
    failures > 0
      ? `${failures} of the last ${counted(attempts, 'attempt')} failed`
      : log.failuresInRow > 0
        ? 'the last attempt failed'
        : `${counted(parkedKeys, 'key')} failed, others succeed`
  return what + errorOf(log)
}

/** For example `no success for 812 s, 17 failures: Connection refused; 3 keys wait, next attempt in 41 s`. */
function failingReason(facts: HealthFacts, log: AttemptLog): string {
  const sinceMs = log.lastSuccessMs ?? log.failingSinceMs ?? facts.nowMs
  const what =
    log.lastSuccessMs === undefined
      ? `no success yet in ${secondsSince(sinceMs, facts)} s`
      : `no success for ${secondsSince(sinceMs, facts)} s`
  const failures = counted(log.failuresInRow, 'failure')
  return `${what}, ${failures}${errorOf(log)}`
}

function errorOf(log: AttemptLog): string {
  return log.lastError === undefined ? '' : `: ${log.lastError}`
}

function waitingText({ parkedKeys, nextAttemptMs, unansweredMs = 0, nowMs }: HealthFacts): string {
  const waits = parkedKeys > 0 ? [thatWait(parkedKeys, 'key')] : []
  // An endpoint that hangs fails only after a minute and looks healthy until then.
  const unansweredS = Math.floor(unansweredMs / 1_000)
  if (unansweredS > 0) waits.push(`a delivery has had no response for ${unansweredS} s`)
  if (nextAttemptMs !== undefined) {
    const seconds = Math.max(Math.ceil((nextAttemptMs - nowMs) / 1_000), 0)
    waits.push(seconds === 0 ? 'next attempt now' : `next attempt in ${seconds} s`)
  }
  return waits.length === 0 ? '' : `; ${waits.join(', ')}`
}

/** For example `; limited to 5 deliveries a second by the operator; 1200 updates wait`. */
function paceText(
  health: Health,
  { limitPerSecond, endpointPerSecond, pendingCount }: HealthFacts,
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
  return `${rate} ${rate === 1 ? 'delivery' : 'deliveries'} a second`
}

function secondsSince(ms: number, { nowMs }: HealthFacts): number {
  return Math.max(Math.round((nowMs - ms) / 1_000), 0)
}

function counted(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? '' : 's'}`
}

function thatWait(count: number, what: string): string {
  return `${counted(count, what)} ${count === 1 ? 'waits' : 'wait'}`
}
