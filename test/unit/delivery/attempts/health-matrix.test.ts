/**
 * Each way in which a queue may be in trouble, for each way in which its updates are fetched: the word, how the reason begins, the
 * events, the gauge and the place on the page. A fact that health.ts gets, a word or a note without a row here does not compile, or
 * fails.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ownHealth } from '../../../../src/delivery/webhook-report.ts'
import type { NoteSubject } from '../../../../src/delivery/queue-notes.ts'
import { TroubleEvents } from '../../../../src/features/fleet/trouble-events.ts'
import { severities } from '../../../../src/page/bots/bot-list.ts'
import { type OperatorEventType, operatorEventTypes } from '../../../../src/kit/operator-event.ts'
import { fleetHealthMetrics } from '../../../../src/kit/metrics.ts'
import { AttemptLog } from '../../../../src/delivery/attempts/attempt-log.ts'
import { AttemptRecorder } from '../../../../src/delivery/attempts/attempt-recorder.ts'
import {
  type HealthFacts,
  healthOf,
  type Polls,
  type Waiting,
} from '../../../../src/delivery/attempts/health.ts'
import { type Health, healthWords } from '../../../../src/kit/states.ts'
import { FakeClock } from '../../../support/kit/fake-clock.ts'

interface Row {
  readonly trouble: string
  readonly webhook?: Seen
  readonly polling?: Seen
}

/** What is to be seen of a trouble, with the facts that cause it. */
interface Seen {
  readonly facts?: Partial<Omit<HealthFacts, 'hasWebhook' | 'log' | 'polls' | 'waiting'>>
  readonly waiting?: Partial<Waiting>
  readonly polls?: Partial<Polls>
  /** The attempts of a webhook, one a second: `.` is a success, `x` a failure. */
  readonly attempts?: string
  /** When an update expired, in seconds before now. */
  readonly expiredBeforeS?: number
  readonly word: Health | undefined
  readonly reason: RegExp
  /** Reported by what this test can run: troubles of bots, and attempts. */
  readonly events: readonly OperatorEventType[]
  /** Reported elsewhere. */
  readonly other?: readonly OperatorEventType[]
  readonly place: (typeof severities)[number] | 'no list'
}

const hourMs = 3_600_000
const seldom = { isWaiting: false, lastBeforeMs: 3 * hourMs, knownForMs: 3 * hourMs }
const note = { notes: ['getUpdates was called with what is ignored: x'] }
const notePlace = { reason: /; getUpdates was called with/, events: [], place: 'no list' } as const
const paused = { troubles: ['the relay is paused: Somebody else polls'] }

const rows: readonly Row[] = [
  {
    trouble: 'nobody polls',
    polling: {
      facts: { pendingCount: 7 },
      polls: seldom,
      word: 'unpolled',
      reason: /^nobody polls; last polled 3 h ago; 7 updates wait/,
      events: ['bot.unpolled'],
      place: 'unpolled',
    },
  },
  {
    trouble: 'updates expire unfetched',
    webhook: {
      attempts: 'xxx',
      expiredBeforeS: 60,
      word: 'failing',
      reason: /^refused; 3 failures in \d+ s, no success yet/,
      events: ['webhook.failing'],
      other: ['dead_letters.added'],
      place: 'failing',
    },
    polling: {
      expiredBeforeS: 60,
      polls: seldom,
      word: 'unpolled',
      reason: /^nobody polls; last polled 3 h ago; the last update expired 60 s ago$/,
      events: ['bot.unpolled'],
      other: ['updates.expired'],
      place: 'unpolled',
    },
  },
  {
    trouble: 'updates expire though somebody polls',
    polling: {
      expiredBeforeS: 0,
      polls: { expiring: { count: 9, forMs: 360_000 } },
      word: 'degraded',
      reason: /^updates expire before polls get them; 9 in 6 min; /,
      events: ['bot.degraded'],
      other: ['updates.expired'],
      place: 'degraded',
    },
  },
  {
    trouble: 'polls confirm nothing',
    polling: {
      facts: { pendingCount: 7 },
      polls: { repeated: { times: 3, firstBeforeMs: 300_000, lastBeforeMs: 1_000 } },
      word: 'degraded',
      reason: /^polls confirm nothing; they get the same updates since \d\d:\d\d UTC; /,
      events: ['bot.degraded'],
      place: 'degraded',
    },
  },
  {
    trouble: 'two programs poll, and get 409',
    polling: {
      polls: { fight: { kind: 'refusal', forMs: 60_000, lastMinute: 40 } },
      word: 'degraded',
      reason: /^two clients poll at once; 40 refusals in the last minute; /,
      events: ['bot.degraded'],
      place: 'degraded',
    },
  },
  {
    trouble: 'two programs poll, and take over',
    polling: {
      polls: { fight: { kind: 'takeover', forMs: 60_000, lastMinute: 20 } },
      word: 'degraded',
      reason: /^two clients poll at once; 20 takeovers in the last minute; /,
      events: ['bot.degraded'],
      place: 'degraded',
    },
  },
  {
    trouble: 'the webhook fails',
    webhook: {
      attempts: '.xxx',
      waiting: { parkedKeys: 1, nextAttemptMs: hourMs },
      word: 'failing',
      reason:
        /^refused; 3 failures in \d+ s, the last success \d+ s ago; 1 key waits, next attempt/,
      events: ['webhook.failing'],
      place: 'failing',
    },
  },
  {
    trouble: 'some attempts fail',
    webhook: {
      attempts: '.x.x',
      word: 'degraded',
      reason: /^refused; 2 of the last 4 attempts failed/,
      events: [],
      place: 'degraded',
    },
  },
  {
    trouble: 'a key fails, and others succeed',
    webhook: {
      waiting: { parkedKeys: 1 },
      attempts: '.',
      word: 'degraded',
      reason: /^deliveries fail; others succeed; 1 key waits/,
      events: [],
      place: 'degraded',
    },
  },
  {
    trouble: 'the endpoint is silent',
    webhook: {
      waiting: { unansweredMs: 10_000 },
      word: 'degraded',
      reason: /^endpoint does not respond; /,
      events: [],
      place: 'degraded',
    },
  },
  {
    trouble: 'the queue falls behind',
    webhook: {
      facts: { lateness: 'growing', pendingCount: 1_200, oldestAgeS: 1_740 },
      attempts: '.',
      word: 'behind',
      reason: /^updates are 29 min late, and get later; 1,200 updates wait; /,
      events: ['bot.degraded'],
      place: 'behind',
    },
    polling: {
      facts: { lateness: 'growing', pendingCount: 1_200, oldestAgeS: 1_740 },
      word: 'behind',
      reason: /^updates are 29 min late, and get later; last polled 1 s ago; 1,200 updates wait, /,
      events: ['bot.degraded'],
      place: 'behind',
    },
  },
  {
    trouble: 'the operator has paused deliveries',
    webhook: {
      facts: { isPaused: true },
      attempts: 'xxx',
      word: 'paused',
      reason: /^paused by the operator/,
      events: ['webhook.failing'],
      place: 'no list',
    },
    // There is nothing to pause.
    polling: {
      facts: { isPaused: true },
      word: undefined,
      reason: /^last polled 1 s ago$/,
      events: [],
      place: 'no list',
    },
  },
  {
    trouble: 'the relay is paused',
    webhook: {
      facts: paused,
      attempts: '.',
      word: 'degraded',
      reason: /^the relay is paused: Somebody else polls; the last attempt succeeded/,
      events: [],
      other: ['relay.paused'],
      place: 'degraded',
    },
    polling: {
      facts: paused,
      word: 'degraded',
      reason: /^the relay is paused: Somebody else polls; last polled 1 s ago/,
      events: [],
      other: ['relay.paused'],
      place: 'degraded',
    },
  },
  {
    trouble: 'the relay is paused, and something worse',
    webhook: {
      facts: paused,
      attempts: 'xxx',
      word: 'failing',
      reason: /^refused; .*, no success yet; the relay is paused/,
      events: ['webhook.failing'],
      other: ['relay.paused'],
      place: 'failing',
    },
    polling: {
      facts: { ...paused, pendingCount: 1 },
      polls: seldom,
      word: 'unpolled',
      reason: /^nobody polls; .*; the relay is paused/,
      events: ['bot.unpolled'],
      other: ['relay.paused'],
      place: 'unpolled',
    },
  },
  {
    trouble: 'parameters are ignored, types do not exist, or methods are not served',
    webhook: { facts: note, attempts: '.', word: 'healthy', ...notePlace },
    polling: { facts: note, word: undefined, ...notePlace },
  },
]

/** Which trouble comes from each fact; `says` is for what only makes a sentence longer. */
const says = 'says'
const troubleOfFact: Readonly<
  Record<keyof HealthFacts | keyof Polls | keyof Waiting | NoteSubject, string>
> = {
  hasWebhook: says,
  isPaused: 'the operator has paused deliveries',
  pendingCount: 'nobody polls',
  log: 'the webhook fails',
  waiting: says,
  polls: says,
  troubles: 'the relay is paused',
  lateness: 'the queue falls behind',
  nowMs: says,
  limitPerSecond: says,
  oldestAgeS: says,
  notes: 'parameters are ignored, types do not exist, or methods are not served',
  isWaiting: says,
  lastBeforeMs: 'nobody polls',
  knownForMs: says,
  fight: 'two programs poll, and get 409',
  repeated: 'polls confirm nothing',
  expiring: 'updates expire though somebody polls',
  parkedSubjects: says,
  parkedKeys: 'a key fails, and others succeed',
  nextAttemptMs: says,
  unansweredMs: 'the endpoint is silent',
  endpointPerSecond: says,
  method: 'parameters are ignored, types do not exist, or methods are not served',
  allowed_updates: 'parameters are ignored, types do not exist, or methods are not served',
  getUpdates: 'parameters are ignored, types do not exist, or methods are not served',
  setWebhook: 'parameters are ignored, types do not exist, or methods are not served',
  deleteWebhook: 'parameters are ignored, types do not exist, or methods are not served',
}

/** The attempts as a webhook records them, and the events of that. */
function attempted(clock: FakeClock, history: string) {
  const log = new AttemptLog()
  const events: OperatorEventType[] = []
  const recorder = new AttemptRecorder(log, {
    clock,
    onFailing: () => events.push('webhook.failing'),
  })
  const on = { address: undefined, startedMs: clock.monotonicMs(), status: 0 }
  for (const what of history) {
    const now = { wallMs: clock.nowMs(), monotonicMs: clock.monotonicMs() }
    const failed = { on, updateId: 1, outcome: 'connection_failed', error: 'refused' } as const
    if (what === '.') recorder.delivered(on, 1, now)
    else recorder.failed({ ...failed, nextRetryMs: undefined }, now)
  }
  return { log, events }
}

function factsOf(seen: Seen, hasWebhook: boolean, clock: FakeClock) {
  const { log, events } = attempted(clock, seen.attempts ?? '')
  const nowMs = clock.nowMs()
  if (seen.expiredBeforeS !== undefined) log.count('expired', nowMs - seen.expiredBeforeS * 1_000)
  const hasLog = hasWebhook ? seen.attempts !== undefined : seen.expiredBeforeS !== undefined
  const facts: HealthFacts = {
    hasWebhook,
    isPaused: false,
    pendingCount: 0,
    log: hasLog ? log : undefined,
    polls: { isWaiting: false, lastBeforeMs: 1_000, knownForMs: hourMs, ...seen.polls },
    limitPerSecond: undefined,
    oldestAgeS: undefined,
    notes: [],
    nowMs,
    ...seen.facts,
    waiting: {
      parkedKeys: 0,
      nextAttemptMs: undefined,
      unansweredMs: undefined,
      endpointPerSecond: undefined,
      ...seen.waiting,
    },
  }
  return { facts, events }
}

/** Returns the events of a bot that is seen like this for ten minutes. */
function reported(facts: HealthFacts): readonly OperatorEventType[] {
  const events: OperatorEventType[] = []
  const troubles = new TroubleEvents(({ type }) => events.push(type))
  const { hasWebhook, polls } = facts
  const health = ownHealth(facts)
  for (let nowMs = 0; nowMs < 600_000; nowMs += 5_000) {
    const reason = (): string => healthOf(facts).reason
    troubles.note({ botId: 100, hasWebhook, health, polls, reason, nowMs, timeMs: nowMs })
  }
  return events
}

function check(seen: Seen, hasWebhook: boolean, name: string): void {
  const { facts, events } = factsOf(seen, hasWebhook, new FakeClock())
  const { health, reason } = healthOf(facts)
  assert.equal(health, seen.word, name)
  assert.match(reason, seen.reason, name)
  assert.deepEqual([...events, ...reported(facts)], seen.events, name)
  for (const type of seen.other ?? []) assert(operatorEventTypes.includes(type), type)
  assert.equal(severities.find((state) => state === health) ?? 'no list', seen.place, name)
  const gauge = fleetHealthMetrics[health ?? 'none']
  assert.equal(gauge, `bots_${health ?? 'polling'}`, name)
}

for (const row of rows) {
  for (const way of ['webhook', 'polling'] as const) {
    const seen = row[way]
    if (seen === undefined) continue
    test(`${row.trouble}: ${way}`, () => check(seen, way === 'webhook', row.trouble))
  }
}

test('each word, each place and each fact has a row', () => {
  const seen = rows.flatMap(({ webhook, polling }) => [webhook, polling].filter(isKnown))
  const words = new Set(seen.map(({ word }) => word))
  for (const word of healthWords) assert(words.has(word), word)
  const places = new Set(seen.map(({ place }) => place))
  for (const place of severities) assert(places.has(place), place)
  const events = new Set(seen.flatMap(({ events: own, other = [] }) => [...own, ...other]))
  for (const type of operatorEventTypes) {
    // Those of a bot that begin a trouble.
    if (/^bot\.(?!recovered|polled)|\.failing|\.paused|\.expired/.test(type)) {
      assert(events.has(type), type)
    }
  }
  const troubles = new Set(rows.map(({ trouble }) => trouble))
  for (const trouble of Object.values(troubleOfFact)) {
    assert(trouble === says || troubles.has(trouble), trouble)
  }
})

function isKnown(seen: Seen | undefined): seen is Seen {
  return seen !== undefined
}
