/** Contestants that answer HTTP requests of `http-load`: anything with ports and processes. */
import type { CaseContext, Contestant } from './contestant.ts'
import { HelperProcess } from './helper-process.ts'
import type { CpuProfile } from './inspected-process.ts'
import type { HttpConnection, HttpSample } from './http-sample.ts'
import { Nginx } from './nginx.ts'

export interface HttpContestantOptions {
  readonly name: string
  readonly connections: readonly HttpConnection[]
  cpuUs(): number
  residentBytes?(): number
  readonly profiles?: readonly CpuProfile[]
  profiled?<T>(work: () => Promise<T>): Promise<T>
}

export function httpContestant(context: CaseContext, options: HttpContestantOptions): Contestant {
  const load = new HelperProcess('http-load', context)
  return {
    ...options,
    async run(durationMs) {
      const cpuUs = options.cpuUs()
      const loadCpuUs = load.cpuUs()
      const { connections } = options
      const ask = (): Promise<HttpSample> => load.ask({ connections, durationMs })
      const sample = await (options.profiled?.(ask) ?? ask())
      return { ...sample, cpuUs: options.cpuUs() - cpuUs, loadCpuUs: load.cpuUs() - loadCpuUs }
    },
  }
}

export interface YardstickOptions {
  readonly name: string
  readonly connections: number
  /** As our own contestant's, so that the load generator does the same. */
  readonly requests: readonly string[]
  readonly bodyBytes: number
}

/** Bare node:http on as many processes as the server has workers, one port each. */
export async function nodeHttp(
  context: CaseContext,
  options: YardstickOptions,
): Promise<Contestant> {
  const { name, bodyBytes } = options
  const helpers = Array.from(
    { length: context.workers },
    () => new HelperProcess('node-http', context),
  )
  const ports = await Promise.all(helpers.map((helper) => helper.ask<number>({ bodyBytes })))
  return httpContestant(context, {
    name,
    connections: connectionsTo(ports, options),
    cpuUs: () => helpers.reduce((sum, helper) => sum + helper.cpuUs(), 0),
  })
}

/** Nothing where nginx is not installed. */
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
      cpuUs: () => server.cpuUs(),
    }),
  ]
}

function connectionsTo(ports: readonly number[], options: YardstickOptions): HttpConnection[] {
  const { requests, bodyBytes } = options
  return Array.from({ length: options.connections }, (_, index) => ({
    port: ports[index % ports.length] ?? 0,
    requests,
    bodyBytesMin: bodyBytes,
    bodyBytesMax: bodyBytes,
  }))
}
