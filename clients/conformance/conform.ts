/** Runs one scenario with one driver: a fake server, the driver, and the judgement. */
import type { Driver } from './driver.ts'
import { FakeServer } from './fake-server.ts'
import { type DriverReport, type Job, jobKey as key, type Mode, newBot, rotation } from './job.ts'
import { judge } from './judge.ts'
import { type OpenPlace, openPlace } from './places.ts'
import type { Scenario } from './scenario.ts'

/** What came of a scenario. */
export interface Conformance {
  /** What is wrong; none if the client conforms. */
  readonly findings: readonly string[]
  /** Of the last run. */
  readonly report: DriverReport
}

/**
 * Runs a scenario in one mode.
 *
 * @param count - How many pairs a long scenario pushes; a tenth of it in mode `single`.
 */
export async function conform(
  driver: Driver,
  { scenario, mode, count }: { scenario: Scenario; mode: Mode; count: number },
): Promise<Conformance> {
  const inMode = mode === 'single' ? Math.ceil(count / 10) : count
  const pairs = scenario.isLong ? inMode : scenario.count
  const { bots } = scenario
  const server = new FakeServer({ scenario, bots, count: pairs, key })
  const fakeUrl = await server.start()
  let place: OpenPlace | undefined
  const findings: string[] = []
  try {
    if (scenario.place !== 'fake server') place = await openPlace(scenario.place, fakeUrl)
    const job: Job = {
      mode,
      count: pairs,
      bots,
      text: 'hello',
      concurrency: 16,
      stream: {},
      ...(mode === 'calls' ? { newBot, rotation } : {}),
      ...scenario.job,
      client: { url: place?.url ?? fakeUrl, key, ...scenario.job.client },
    }
    for (let run = 1; ; run++) {
      server.pushes.forgetAttempts()
      const report = await driver.run(job)
      findings.push(...judge({ scenario, job, run, report, server }))
      if (run === scenario.runs) return { findings, report }
    }
  } finally {
    await place?.close()
    await server.close()
  }
}
