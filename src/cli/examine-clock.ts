/**
 * The wall clock, by which updates expire and signatures are dated. Without a packet to another machine, only three things
 * can be known: whether the clock is before the time at which this program was installed, whether it is before the last
 * write to the data directory, and what the system says about its synchronization.
 */
import { execFile } from 'node:child_process'
import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { type Clock, utcText } from '../kit/clock.ts'
import { bad, type Finding, good, warn } from '../kit/finding.ts'
import { answerMsMax } from './limits.ts'

/** A time of a file may be ahead of the clock by so much: file systems round. Chosen. */
const clockSlackMs = 2_000

export interface ClockFacts {
  readonly nowMs: number
  /** When this program was installed. */
  readonly installedMs: number
  /** When the data directory was last written; 0 if there is none. */
  readonly writtenMs: number
  /** Whether the system says that its clock is synchronized; undefined if it says nothing. */
  readonly isSynchronized: boolean | undefined
}

export async function examineClock({
  directory,
  clock,
}: {
  readonly directory: string
  readonly clock: Clock
}): Promise<readonly Finding[]> {
  const [installedMs, writtenMs, isSynchronized] = await Promise.all([
    modifiedMs(fileURLToPath(import.meta.url)),
    newestMs([directory, join(directory, 'ids'), join(directory, 'marks')]),
    synchronization(),
  ])
  return clockFindings({ nowMs: clock.nowMs(), installedMs, writtenMs, isSynchronized })
}

export function clockFindings(facts: ClockFacts): readonly Finding[] {
  const { nowMs, installedMs, writtenMs, isSynchronized } = facts
  const now = `the clock says ${utcText(nowMs)}`
  if (nowMs + clockSlackMs < installedMs) {
    return [bad(`${now}, but this program was installed at ${utcText(installedMs)}: set the clock`)]
  }
  if (nowMs + clockSlackMs < writtenMs) {
    return [
      bad(
        `${now}, but the data directory was written at ${utcText(writtenMs)}: set the clock, because updates expire by it`,
      ),
    ]
  }
  if (isSynchronized === true) return [good(`${now} and is synchronized`)]
  const advice = 'check it with timedatectl or chronyc tracking'
  return [
    warn(
      isSynchronized === false
        ? `${now} and is not synchronized: start a time service such as chrony or systemd-timesyncd`
        : `${now}, and the system does not say whether it is synchronized: ${advice}`,
    ),
  ]
}

async function newestMs(directories: readonly string[]): Promise<number> {
  const times = await Promise.all(
    directories.map(async (directory) => {
      const names = await readdir(directory).catch(() => [])
      return Math.max(0, ...(await Promise.all(names.map((n) => modifiedMs(join(directory, n))))))
    }),
  )
  return Math.max(...times)
}

async function modifiedMs(path: string): Promise<number> {
  try {
    return (await stat(path)).mtimeMs
  } catch {
    return 0
  }
}

/** timedatectl asks a service of this machine. Containers have neither. */
async function synchronization(): Promise<boolean | undefined> {
  try {
    const args = ['show', '--property=NTPSynchronized', '--value']
    const { stdout } = await promisify(execFile)('timedatectl', args, { timeout: answerMsMax })
    const word = stdout.trim()
    return word === 'yes' ? true : word === 'no' ? false : undefined
  } catch {
    return undefined
  }
}
