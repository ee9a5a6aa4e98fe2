/**
 * Relays that wait: 1,000 bots whose updates come from another server, which has none for them. Each has a long poll of 50 s
 * there, so two minutes have more than two polls of each. Memory is that of a newly started server, against one with the
 * same bots and no relay.
 */
import { randomBytes } from 'node:crypto'
import { foreignToken, relayFlags } from '../../test/support/origin/relay-server.ts'
import { Origin } from '../../test/support/origin/origin.ts'
import { makeCertificate } from '../certificate.ts'
import type { BenchCase, CaseContext, Sample } from '../contestant.ts'
import { meterCpu } from '../cpu-meter.ts'
import { forEachOf } from '../for-each-of.ts'
import { type ServerOptions, ServerUnderTest } from '../server-under-test.ts'
import { until } from '../until.ts'

const relays = 1_000
const firstRelayedBot = 2_000_000
const pollMs = 50_000
const measuredMs = 120_000
/** A server that has just started still compiles and collects garbage, so its memory is read after this. */
const restMs = 5_000
const waitMsMax = 120_000
const kib = 1_024
const cpuFigure = '% of a core'
const memoryFigure = 'kB a relay'

export const idleRelaysCases: readonly BenchCase[] = [
  caseOf('idle-relays', `${relays.toLocaleString('en')} relays without updates`, false),
  caseOf('idle-relays-tls', `${relays.toLocaleString('en')} such relays with TLS`, true),
]

function caseOf(name: string, title: string, isTls: boolean): BenchCase {
  return {
    name,
    title: `${title}, for ${measuredMs / 1_000} s`,
    operation: 'poll',
    targets: [{ kind: 'figure', figure: cpuFigure, max: 5 }],
    charted: { kind: 'figure', figure: memoryFigure },
    isExtra: true,
    freshRoundsMax: 1,
    open: (context) => Promise.resolve([{ name: 'postbote', run: () => measure(context, isTls) }]),
  }
}

async function measure(context: CaseContext, isTls: boolean): Promise<Sample> {
  const certificate = isTls ? makeCertificate(context.directory) : undefined
  const origin = await Origin.start({ after: (end) => context.atEnd(end) }, certificate)
  const options: ServerOptions = {
    isInspected: false,
    trustFile: certificate?.file,
    flags: [...relayFlags(origin)],
  }
  const tokens = Array.from({ length: relays }, (_, nth) => foreignToken(firstRelayedBot + nth))
  await origin.control.register(
    tokens.map((token) => ({ botId: Number.parseInt(token, 10), token })),
  )
  const prepared = await prepare(
    context,
    options,
    async (server, token) => {
      const names = { first_name: 'Bench', username: `bench_${randomBytes(4).toString('hex')}_bot` }
      await server.private('POST', '/v1/bots', { ...names, token })
    },
    tokens,
  )
  const without = await ServerUnderTest.start(context, { ...options, directory: prepared })
  await pause(restMs)
  const beforeBytes = without.proportionalBytes()
  await without.close()

  await prepare(
    context,
    { ...options, directory: prepared },
    (server, token) => {
      const path = `/v1/bots/${Number.parseInt(token, 10)}/relay`
      return server.private('PUT', path, { from: origin.url, token })
    },
    tokens,
  )
  const server = await ServerUnderTest.start(context, { ...options, directory: prepared })
  await until(async () => (await origin.control.waitingPolls()) === relays, waitMsMax)
  await pause(restMs)
  const bytes = server.proportionalBytes() - beforeBytes
  const before = (await origin.control.calls()).length
  const costs = meterCpu([server], [])
  const startMs = performance.now()
  await pause(measuredMs)
  const spent = costs()
  const seconds = (performance.now() - startMs) / 1_000
  const operations = (await origin.control.calls()).length - before
  if (operations < relays * Math.floor(measuredMs / pollMs)) throw new Error('too few polls')
  await server.close()
  const figures = {
    [cpuFigure]: spent.cpuUs / seconds / 10_000,
    [memoryFigure]: bytes / relays / kib,
  }
  return { operations, seconds, ...spent, figures }
}

/** Starts a server, does the work for each token, and ends the server. Returns its directory. */
async function prepare(
  context: CaseContext,
  options: ServerOptions,
  work: (server: ServerUnderTest, token: string) => Promise<unknown>,
  tokens: readonly string[],
): Promise<string> {
  const server = await ServerUnderTest.start(context, options)
  await forEachOf(tokens, (token) => work(server, token))
  await server.close()
  return server.directory
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
