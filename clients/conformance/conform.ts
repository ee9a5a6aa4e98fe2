/** Runs one scenario with one driver: a fake server, the driver, and the judgement. */
import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import type { Driver } from './driver.ts'
import { FakeServer } from './fake-server.ts'
import type { DriverReport, Job, Mode } from './job.ts'
import { judge } from './judge.ts'
import type { Scenario } from './scenario.ts'

/** What came of a scenario. */
export interface Conformance {
  /** What is wrong; none if the client conforms. */
  readonly findings: readonly string[]
  /** Of the last run. */
  readonly report: DriverReport
}

const bots = [101, 102, 103, 104]
const key = 'conformance-key-0123456789abcdef'

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
  const server = new FakeServer({ scenario, bots, count: pairs, key })
  const url = await server.start()
  const findings: string[] = []
  try {
    const job: Job = {
      mode,
      count: pairs,
      bots,
      text: 'hello',
      concurrency: 16,
      stream: {},
      ...scenario.job,
      client: {
        url: scenario.isUnreachable ? await silentUrl() : url,
        key,
        ...scenario.job.client,
      },
    }
    for (let run = 1; ; run++) {
      server.pushes.forgetAttempts()
      const report = await driver.run(job)
      findings.push(...judge({ scenario, job, run, report, server }))
      if (run === scenario.runs) return { findings, report }
    }
  } finally {
    await server.close()
  }
}

/** Returns a URL where nobody listens. */
async function silentUrl(): Promise<string> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return `http://127.0.0.1:${port}`
}
