/** What the processes of a server hold, according to the system and /metrics, to find leaks. */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { Server } from '../support/server/server.ts'
import { until } from '../support/kit/until.ts'

/** The server must be started with this file loaded. */
export const tellMemoryFile = fileURLToPath(new URL('tell-memory.js', import.meta.url))

export interface Vitals {
  /** Per process, the primary first. */
  readonly descriptors: readonly number[]
  /** The descriptors that are not connections. */
  readonly files: readonly number[]
  readonly residentMib: readonly number[]
  /** Memory held by the program, without garbage. */
  readonly heldKib: readonly number[]
  readonly cpuS: number
  readonly waitingPolls: number
}

export async function vitalsOf(server: Server): Promise<Vitals> {
  const pids = server.pids()
  const { text } = await server.admin('GET', '/metrics')
  return {
    descriptors: pids.map((pid) => descriptorsOf(pid)),
    files: pids.map((pid) => filesOf(pid)),
    residentMib: pids.map((pid) => residentMib(pid)),
    heldKib: await Promise.all(pids.map((pid) => heldKib(server, pid))),
    cpuS: pids.reduce((sum, pid) => sum + cpuS(pid), 0),
    waitingPolls: Number(/^postbote_polls_waiting (\d+)/m.exec(text)?.[1]),
  }
}

export function descriptorsOf(pid: number): number {
  return readdirSync(`/proc/${pid}/fd`).length
}

/** The table of descriptors may change while it is read. */
export function filesOf(pid: number): number {
  const folder = `/proc/${pid}/fd`
  return readdirSync(folder).filter((name) => {
    try {
      return !readlinkSync(`${folder}/${name}`).startsWith('socket:')
    } catch {
      return false
    }
  }).length
}

async function heldKib(server: Server, pid: number): Promise<number> {
  const toldBefore = told(server, pid).length
  process.kill(pid, 'SIGUSR2')
  await until(() => told(server, pid).length > toldBefore)
  return told(server, pid).at(-1) ?? Number.NaN
}

function told(server: Server, pid: number): readonly number[] {
  return [...server.output().matchAll(/^holds (\d+) (\d+)$/gm)]
    .filter(([, by]) => Number(by) === pid)
    .map(([, , kib]) => Number(kib))
}

function residentMib(pid: number): number {
  const [, kib] = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
  return Math.round(Number(kib) / 1024)
}

function cpuS(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
  // User and system time, in hundredths of a second.
  return (Number(fields[11]) + Number(fields[12])) / 100
}
