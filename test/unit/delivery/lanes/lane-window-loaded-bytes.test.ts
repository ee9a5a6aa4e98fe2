import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Dispatcher } from '../../../../src/delivery/dispatcher.ts'
import type { ServerGate } from '../../../../src/delivery/pace/flood-gate.ts'
import { LoadedBytes } from '../../../../src/delivery/lanes/lane-window.ts'
import { far, pendingUpdate } from '../../../support/webhook/delivery-state.ts'
import { FakeClock } from '../../../support/kit/fake-clock.ts'

const openGate: ServerGate = {
  mayOpen: () => true,
  opened: () => undefined,
  closed: () => undefined,
  mayIdle: () => true,
  turnedAway: () => undefined,
  mustYield: () => false,
}

test('updates count for all webhooks of a worker until their dispatcher is closed', async () => {
  const loaded = new LoadedBytes(1_000, 1)
  const pending = [1, 2, 3].map((id) => pendingUpdate(id, 'key', far, 400))
  const dispatcher = new Dispatcher({
    settings: { url: 'https://bots.example/', maxConnections: 1 },
    source: {
      heldBy: () => undefined,
      pendingAfter: (after) => pending.filter(({ updateId }) => updateId > after),
      remove: () => undefined,
      addDeadLetters: () => undefined,
    },
    clock: new FakeClock(),
    random: () => 0,
    network: {
      lookup: async () => ['192.0.2.1'],
      judge: async (addresses) => addresses.map(() => true),
      connect: ({ signal }) =>
        new Promise((_resolve, reject) => {
          signal?.addEventListener('abort', () => reject(new Error('aborted')))
        }),
    },
    secretHeaderNames: [],
    goneTimeoutMs: Number.POSITIVE_INFINITY,
    serverGate: openGate,
    loaded,
    onGone: () => undefined,
    onGoneClock: () => undefined,
    counters: { add: () => undefined },
  })
  dispatcher.start(0)
  assert.equal(loaded.bytesMaxOfEach, 1)
  await dispatcher.close()
  assert.equal(loaded.bytesMaxOfEach, Number.POSITIVE_INFINITY)
  loaded.add(999)
  assert.equal(loaded.bytesMaxOfEach, Number.POSITIVE_INFINITY)
})
