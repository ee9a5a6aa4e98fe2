import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EndingSoon, endingSoonPeriodMs } from '../../../../src/features/server/ending-soon.ts'
import { endingSoonMs } from '../../../../src/kit/limits.ts'
import { issueCertificate } from '../../../support/network/certificates.ts'
import { FakeClock } from '../../../support/kit/fake-clock.ts'

function routesOf(nodes: number): ConstructorParameters<typeof EndingSoon>[0]['routes'] {
  const members = Array.from({ length: nodes }, (_, nth) => `node-${nth}`)
  return {
    members: () => members.map((name) => ({ name, state: 'serving' as const, shards: [] })),
    lostNodes: 1,
  }
}

test('the gauges count what expires within 14 days', async () => {
  const clock = new FakeClock()
  const shown: Record<string, number> = {}
  const asked: number[] = []
  const endingSoon = new EndingSoon({
    clock,
    gauges: { set: (name, value) => void (shown[name] = value) },
    ring: {
      countEnding: (beforeMs) => {
        asked.push(beforeMs - clock.nowMs())
        return 2
      },
    },
    certificates: {},
    routes: routesOf(3),
    space: { freeBytes: 5 * 2 ** 20 + 7 },
  })
  await clock.advance(endingSoonPeriodMs)
  assert.deepEqual(shown, {
    nodes: 3,
    nodes_lost: 1,
    disk_free_mib: 5,
    access_keys_ending: 2,
    certificates_ending: 0,
    bot_certificate_left_seconds: 0,
    private_certificate_left_seconds: 0,
  })
  assert.deepEqual(asked, [endingSoonMs])
  endingSoon.close()
  assert.equal(clock.timers, 0)
})

test('the certificates of the listeners are counted, too, and how long they last is shown', async () => {
  const shown: Record<string, number> = {}
  const clock = new FakeClock(Date.UTC(2040, 0, 1, 12) - endingSoonPeriodMs)
  const from = '20200101000000Z'
  const bot = issueCertificate({ name: 'bots', from, until: '20400102000000Z' })
  const own = issueCertificate({ name: 'admin', from, until: '20391231000000Z' })
  const endingSoon = new EndingSoon({
    clock,
    gauges: { set: (name, value) => void (shown[name] = value) },
    ring: { countEnding: () => 0 },
    certificates: { bot, private: own },
    routes: routesOf(0),
    space: undefined,
  })
  await clock.advance(endingSoonPeriodMs)
  endingSoon.close()
  assert.deepEqual(
    [shown['certificates_ending'], shown['bot_certificate_left_seconds']],
    [2, 43_200],
  )
  assert.equal(shown['private_certificate_left_seconds'], 0)
})
