/** What a server's processes hold, as the system and /metrics tell: for finding what is never given back. */
import { readdirSync, readFileSync } from 'node:fs'
import type { Server } from '../support/server.ts'

export interface Vitals {
  /** Of each process, the primary first. */
  readonly descriptors: readonly number[]
  readonly residentMib: readonly number[]
  readonly cpuS: number
  readonly waitingPolls: number
}

export async function vitalsOf(server: Server): Promise<Vitals> {
  const pids = server.pids()
  const { text } = await server.admin('GET', '/metrics')
  return {
    descriptors: pids.map((pid) => readdirSync(`/proc/${pid}/fd`).length),
    residentMib: pids.map((pid) => residentMib(pid)),
    cpuS: pids.reduce((sum, pid) => sum + cpuS(pid), 0),
    waitingPolls: Number(/^postbote_polls_waiting (\d+)/m.exec(text)?.[1]),
  }
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
