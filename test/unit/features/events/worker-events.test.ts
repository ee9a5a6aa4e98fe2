import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  eventTarget,
  type UsernameOf,
  WorkerEvents,
} from '../../../../src/features/events/worker-events.ts'
import type { NewOperatorEvent } from '../../../../src/kit/operator-event.ts'
import type { PrimaryCalls } from '../../../../src/process/channel/primary-control.ts'
import { FakeClock, settle } from '../../../support/kit/fake-clock.ts'
import { TestCounters } from '../../../support/store/shard-life.ts'

const eventsUrl = 'https://alerts.example/hook'

test('each secret is a key that signs, and without an address there are none', () => {
  const eventSecrets = ['whsec_abcd', 'whsec_efgh']
  const target = eventTarget({ config: { eventsUrl }, eventSecrets }, 'east')
  assert.deepEqual(
    target?.keys.map((key) => key.secret),
    ['abcd', 'efgh'],
  )
  assert.equal(target?.idPrefix, 'event-east-')
  const none = { config: { eventsUrl: undefined }, eventSecrets: [] }
  assert.equal(eventTarget(none, undefined), undefined)
})

function setUp(usernameOf: UsernameOf) {
  const sent: NewOperatorEvent[] = []
  const primary: Pick<PrimaryCalls, 'call'> = {
    call(_name, [events]) {
      sent.push(...Object(events))
      return new Promise(() => undefined)
    },
  }
  const clock = new FakeClock()
  const surroundings = { clock, counters: new TestCounters() }
  const out = { primary: primary as PrimaryCalls, usernameOf }
  const events = new WorkerEvents(surroundings, out, { total: () => 0 }, undefined)
  return { clock, events, sent }
}

test('each event names its bot if the name is known, and each bot is looked up once', async () => {
  const asked: number[] = []
  const { events, sent } = setUp(async (botId) => {
    asked.push(botId)
    return botId === 7 ? 'echo' : undefined
  })
  const about = [{ botId: 7 }, { botId: 7, isTest: true }, { botId: 8 }, { worker: 3 }]
  for (const each of about) events.report({ type: 'queue.full', timeMs: 0, ...each })
  void events.close()
  for (let turns = 0; turns < 20; turns++) await settle()
  assert.deepEqual(
    sent.map(({ botId, username }) => [botId, username]),
    [
      [7, 'echo'],
      [7, 'echo'],
      [8, undefined],
      [undefined, undefined],
    ],
  )
  assert.deepEqual(asked, [7, 8])
})

test('events go out without the names of their bots if a disk does not respond', async () => {
  const { clock, events, sent } = setUp(() => new Promise(() => undefined))
  for (const botId of [7, 8]) events.report({ type: 'queue.full', timeMs: 0, botId })
  void events.close()
  await settle()
  assert.equal(sent.length, 0)
  await clock.advance(1_000)
  assert.deepEqual(
    sent.map(({ botId, username }) => [botId, username]),
    [
      [7, undefined],
      [8, undefined],
    ],
  )
})
