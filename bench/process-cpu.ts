/**
 * The CPU time of a process and all its descendants, from /proc (Linux only).
 *
 * utime and stime of /proc/<pid>/stat count all threads of the process in ticks of 10 ms: with a second of load or more
 * the error is below one percent.
 */
import { readFileSync } from 'node:fs'
import { execFileSync } from 'node:child_process'

export const usPerTick = 1e6 / Number(execFileSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }))

/** Returns the process and its current descendants. */
export function processTree(pid: number): number[] {
  const tree = [pid]
  for (const parent of tree) {
    const children = readFileSync(`/proc/${parent}/task/${parent}/children`, 'utf8')
    tree.push(...children.split(' ').filter(Boolean).map(Number))
  }
  return tree
}

export function cpuUsOf(pids: readonly number[]): number {
  return pids.reduce((sum, pid) => sum + ticksOf(pid), 0) * usPerTick
}

/** The same for a process and all its descendants, also those that have ended and that their parent has waited for. */
export function cpuUsOfFamily(pid: number): number {
  const ticks = processTree(pid).reduce((sum, each) => sum + ticksOf(each) + endedTicksOf(each), 0)
  return ticks * usPerTick
}

export function residentBytesOf(pids: readonly number[]): number {
  return pids.reduce((sum, pid) => {
    const [, kib] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
    return sum + Number(kib ?? 0) * 1024
  }, 0)
}

/** The resident bytes, where memory that several processes share is divided among them. */
export function proportionalBytesOf(pids: readonly number[]): number {
  return pids.reduce((sum, pid) => {
    const rollup = readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8')
    const [, kib] = /^Pss:\s+(\d+) kB$/m.exec(rollup) ?? []
    return sum + Number(kib ?? 0) * 1024
  }, 0)
}

/** `task` is a process, or a thread as PID/task/TID. */
export function ticksOf(task: number | string): number {
  const fields = statOf(task)
  return Number(fields[11]) + Number(fields[12])
}

/** cutime and cstime. */
function endedTicksOf(pid: number): number {
  const fields = statOf(pid)
  return Number(fields[13]) + Number(fields[14])
}

/** The fields after the name, which is in parentheses and may contain anything; utime is the 14th of all fields. */
function statOf(task: number | string): readonly string[] {
  const stat = readFileSync(`/proc/${task}/stat`, 'utf8')
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ')
}
