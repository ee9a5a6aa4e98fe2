import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EndingSoon, endingSoonMs, endingSoonPeriodMs } from '../../../src/app/ending-soon.ts'
import { issueCertificate } from '../../support/network/certificates.ts'
import { FakeClock } from '../../support/kit/fake-clock.ts'

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
    security: undefined,
    nodes: () => 3,
  })
  await clock.advance(endingSoonPeriodMs)
  assert.deepEqual(shown, { nodes: 3, access_keys_ending: 2, certificates_ending: 0 })
  assert.deepEqual(asked, [endingSoonMs])
  endingSoon.close()
  assert.equal(clock.timers, 0)
})

test('the certificate of a node is counted from 14 days before its end', async () => {
  const counted: number[] = []
  for (const until of ['20400115000000Z', '20400116000000Z']) {
    const clock = new FakeClock(Date.UTC(2040, 0, 1, 12) - endingSoonPeriodMs)
    const { cert, key } = issueCertificate({ name: 'node', from: '20200101000000Z', until })
    const endingSoon = new EndingSoon({
      clock,
      gauges: {
        set: (name, value) => void (name === 'certificates_ending' && counted.push(value)),
      },
      ring: { countEnding: () => 0 },
      security: { kind: 'certificates', cert, key, ca: cert },
      nodes: () => 1,
    })
    await clock.advance(endingSoonPeriodMs)
    endingSoon.close()
  }
  assert.deepEqual(counted, [1, 0])
})
