/**
 * Every client for producers, in its language, in every scenario of clients/conformance, at the fake server.
 *
 * CONFORMANCE_PAIRS=100000 pushes more (`npm run conformance`).
 */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { conform } from '../../clients/conformance/conform.ts'
import { conformanceClients } from '../../clients/conformance/conformance-clients.ts'
import { Driver } from '../../clients/conformance/driver.ts'
import { writeResults } from '../../clients/conformance/results.ts'
import { allScenarios } from '../../clients/conformance/shard-scenarios.ts'

const isLong = process.env['CONFORMANCE_PAIRS'] !== undefined
const count = Number(process.env['CONFORMANCE_PAIRS'] ?? 1_000)
/**
 * Most scenarios wait most of their time. Each lane has a driver, which does one after the other. A long run has one lane
 * of one client, and shows how fast it is.
 */
const lanes = isLong ? 1 : 4

describe('clients for producers', { concurrency: isLong ? 1 : conformanceClients.length }, () => {
  for (const client of conformanceClients) {
    const missing = client.prepare()
    const options = { skip: missing ?? false, concurrency: lanes }
    test(`${client.name}: the client conforms`, options, async (t) => {
      const all = allScenarios.flatMap((scenario) =>
        scenario.modes.map((mode) => ({ scenario, mode })),
      )
      const left = all.values()
      const lane = async (): Promise<void> => {
        const driver = new Driver(client)
        for (const { scenario, mode } of left) {
          const name = `${scenario.name} (${mode})`
          await t.test(`${client.name}: ${name}`, async () => {
            const { findings, report } = await conform(driver, { scenario, mode, count })
            assert.deepEqual(findings, [])
            if (!scenario.isLong) return
            writeResults({ client: client.name, name, count: report.results.length, report })
          })
        }
        assert.equal(await driver.close(), 0)
      }
      await Promise.all(Array.from({ length: lanes }, lane))
    })
  }
})
