/** Contestants that serve HTTP requests of `http-load`: any program with ports and processes. */
import type { CaseContext, Contestant } from './contestant.ts'
import { type Metered, meterCpu } from './cpu-meter.ts'
import { HelperProcess } from './helper-process.ts'
import type { HttpConnection, HttpQuestion, HttpSample } from './http-sample.ts'
import type { CpuProfile } from './inspected-process.ts'
import { Nginx } from './nginx.ts'
import type { ServerUnderTest } from './server-under-test.ts'

export interface HttpContestantOptions {
  readonly name: string
  readonly connections: readonly HttpConnection[]
  readonly processes: readonly Metered[]
  readonly isWarm?: boolean
  readonly residentBytes?: () => number
  readonly profiles?: readonly CpuProfile[]
  profiled?<T>(work: () => Promise<T>): Promise<T>
}

/** The body of responses that do not change from request to request. */
export const smallBody = '{"ok":true,"result":[]}'
export const commonYardstick = 'nginx return 200'
const commonConnections = 32

export function httpContestant(context: CaseContext, options: HttpContestantOptions): Contestant {
  const load = new HelperProcess('http-load', context)
  const { name, connections, processes, isWarm = false, profiles } = options
  return {
    name,
    isWarm,
    ...(profiles === undefined ? {} : { profiles }),
    ...(options.residentBytes === undefined ? {} : { residentBytes: options.residentBytes }),
    async run(durationMs) {
      const costs = meterCpu(processes, [load])
      const question: HttpQuestion = { connections, durationMs }
      const ask = (): Promise<HttpSample> => load.ask(question)
      const { operations, seconds, delaysMs } = await (options.profiled?.(ask) ?? ask())
      return { operations, seconds, ...costs(), figures: probeFigures(delaysMs) }
    },
  }
}

function probeFigures(delaysMs: readonly number[]): Record<string, number> {
  if (delaysMs.length === 0) return {}
  return { 'probe p50 ms': partOf(delaysMs, 0.5), 'probe p99 ms': partOf(delaysMs, 0.99) }
}

function partOf(sorted: readonly number[], part: number): number {
  return sorted[Math.ceil(sorted.length * part) - 1] ?? Number.NaN
}

/** Our server under such a load. */
export function ownContestant(
  context: CaseContext,
  options: {
    readonly name?: string
    readonly server: ServerUnderTest
    readonly connections: readonly HttpConnection[]
  },
): Contestant {
  const { name = 'postbote', server, connections } = options
  return httpContestant(context, {
    name,
    connections,
    processes: server.processes,
    residentBytes: () => server.residentBytes(),
    profiles: server.profiles,
    profiled: (work) => server.profiled(work),
  })
}

export interface YardstickOptions {
  readonly name: string
  readonly connections: number
  /** The requests of our own contestant, so that the load generator does the same work. */
  readonly requests: readonly string[]
  readonly bodyBytes: number
  readonly isOneShot?: boolean
}

/** Starts a helper on as many processes as the server has workers, with one port each. */
export async function helperServers(
  context: CaseContext,
  file: string,
  questionOf: (index: number) => object,
): Promise<{ readonly helpers: readonly HelperProcess[]; readonly ports: readonly number[] }> {
  const indexes = Array.from({ length: context.workers }, (_, index) => index)
  const helpers = indexes.map(() => new HelperProcess(file, context))
  const ports = await Promise.all(
    helpers.map((helper, index) => helper.ask<number>(questionOf(index))),
  )
  return { helpers, ports }
}

/** Bare node:http. */
export async function nodeHttp(
  context: CaseContext,
  options: YardstickOptions,
): Promise<Contestant> {
  const { name, bodyBytes } = options
  const { helpers, ports } = await helperServers(context, 'node-http', () => ({ bodyBytes }))
  return httpContestant(context, {
    name,
    connections: connectionsTo(ports, options),
    processes: helpers,
  })
}

/** Returns nothing if nginx is not installed. */
export async function nginx(
  context: CaseContext,
  options: YardstickOptions,
): Promise<Contestant[]> {
  if (!Nginx.isInstalled()) return []
  const server = await Nginx.start(context, options.bodyBytes)
  return [
    httpContestant(context, {
      name: options.name,
      connections: connectionsTo([server.port], options),
      processes: [server],
      isWarm: true,
    }),
  ]
}

/** The cost of a small request on this machine, measured in every case. */
export function commonNginx(context: CaseContext): Promise<Contestant[]> {
  const request =
    'GET /a/small/request HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\nConnection: keep-alive\r\n\r\n'
  return nginx(context, {
    name: commonYardstick,
    connections: commonConnections,
    requests: [request],
    bodyBytes: smallBody.length,
  })
}

export function connectionsTo(
  ports: readonly number[],
  options: YardstickOptions,
): HttpConnection[] {
  const { requests, bodyBytes, isOneShot = false } = options
  return Array.from({ length: options.connections }, (_, index) => ({
    port: ports[index % ports.length] ?? 0,
    requests,
    bodyBytesMin: bodyBytes,
    bodyBytesMax: bodyBytes,
    isOneShot,
  }))
}
