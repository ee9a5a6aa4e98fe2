import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FleetRows } from '../../../../src/features/fleet/fleet-rows.ts'
import {
  fleetOrder,
  type FleetStatus,
  hasPrefix,
  isInState,
} from '../../../../src/features/fleet/fleet-status.ts'
import { type FleetState, fleetStates } from '../../../../src/kit/states.ts'

const quiet: FleetStatus = {
  mode: 'polling',
  pendingCount: 0,
  isPaused: false,
  isPollWaiting: false,
}

function statesOf(status: Partial<FleetStatus>): FleetState[] {
  return fleetStates.filter((state) => isInState({ ...quiet, ...status }, state))
}

test('a bot may be in several states, or in none', () => {
  assert.deepEqual(statesOf({}), ['idle'])
  assert.deepEqual(statesOf({ isPollWaiting: true }), [])
  assert.deepEqual(statesOf({ mode: 'webhook', health: 'healthy' }), ['healthy', 'idle'])
  const old = { pendingCount: 1, oldestAgeS: 61 }
  assert.deepEqual(statesOf(old), ['stuck'])
  assert.deepEqual(statesOf({ ...old, mode: 'webhook', health: 'failing' }), ['failing', 'stuck'])
  assert.deepEqual(statesOf({ ...old, isPaused: true }), ['paused', 'stuck'])
  assert.deepEqual(statesOf({ isPollWaiting: true, isFought: true }), ['conflict'])
})

test('a bot is stuck after more than a minute only', () => {
  assert.deepEqual(statesOf({ pendingCount: 1, oldestAgeS: 60 }), [])
  assert.deepEqual(statesOf({ pendingCount: 1, oldestAgeS: 61, takenBeforeMs: 60_000 }), [])
  assert.deepEqual(statesOf({ pendingCount: 1, oldestAgeS: 61, takenBeforeMs: 60_001 }), ['stuck'])
})

test('bots are in the order of their ids, or of what they are sorted by, highest first', () => {
  const bots = [
    { botId: 1, status: { pendingCount: 0, deadLetters: 2 } },
    { botId: 2, status: { pendingCount: 4, oldestAgeS: 0, deadLetters: 3 } },
    { botId: 3, status: { pendingCount: 9, oldestAgeS: 5 } },
    { botId: 4, status: { pendingCount: 4, oldestAgeS: 7 } },
    { botId: 5, status: undefined },
  ]
  const idsBy = (sort: Parameters<typeof fleetOrder>[0]): number[] =>
    bots
      .toReversed()
      .toSorted(fleetOrder(sort))
      .map(({ botId }) => botId)
  assert.deepEqual(idsBy(undefined), [1, 2, 3, 4, 5])
  assert.deepEqual(idsBy('pending'), [3, 2, 4, 1, 5])
  assert.deepEqual(idsBy('oldest_age'), [4, 3, 2, 1, 5])
  assert.deepEqual(idsBy('dead_letters'), [2, 1, 3, 4, 5])
})

test('a prefix is compared with the digits of the id and with the name in any case', () => {
  assert(hasPrefix('47', named(4_711, 'echo_bot')))
  assert(hasPrefix('ECHO', named(4_711, 'Echo_bot')))
  assert(!hasPrefix('711', named(4_711, 'echo_bot')))
  assert(!hasPrefix('echo_bot_2', named(4_711, 'echo_bot')))
})

function named(queue: number, username: string) {
  const row = new FleetRows().of(queue)
  row.username = username
  return row
}
