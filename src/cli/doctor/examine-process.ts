/** Node.js and the limits of its processes. */
import { readFileSync } from 'node:fs'
import { workerConnectionLimit } from '../../process/connection-limit.ts'
import { bad, type Finding, good, warn } from '../../kit/finding.ts'

/** What docs/run/operations.md advises. */
const descriptorsAdvised = 65_536

/** With fewer descriptors a worker refuses connections that a handful of bots may open. Chosen. */
const descriptorsMin = 1_024

/** The oldest version of Node.js that is tested, as in package.json. */
export const nodeVersionMin = [20, 19] as const

export interface ProcessFacts {
  /** The version of Node.js, such as `20.19.0`. */
  readonly nodeVersion: string
  /** The text of /proc/self/limits; empty where there is no such file. */
  readonly limits: string
}

export function examineProcess(facts: ProcessFacts = ownFacts()): readonly Finding[] {
  return [versionFinding(facts.nodeVersion), descriptorsFinding(facts.limits)]
}

function ownFacts(): ProcessFacts {
  return { nodeVersion: process.versions.node, limits: limitsOfProcess() }
}

function limitsOfProcess(): string {
  try {
    return readFileSync('/proc/self/limits', 'latin1')
  } catch {
    return ''
  }
}

function versionFinding(version: string): Finding {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  const [majorMin, minorMin] = nodeVersionMin
  const isNewEnough = major > majorMin || (major === majorMin && minor >= minorMin)
  if (isNewEnough) return good(`Node.js ${version}`)
  return bad(`Node.js ${version}: install version ${nodeVersionMin.join('.')} or a later one`)
}

/** Node.js raises the soft limit to the hard one at its start, so this is the number that a server gets here. */
function descriptorsFinding(limits: string): Finding {
  const [, number] = /^Max open files +(\d+) /m.exec(limits) ?? []
  if (number === undefined) return good('the system does not limit file descriptors')
  const connections = workerConnectionLimit(() => limits)
  const text = `${number} file descriptors for each process, so a worker holds up to ${connections} connections`
  const advice = `raise the limit to ${descriptorsAdvised}: LimitNOFILE in a systemd unit, ulimit -Hn in a shell`
  if (Number(number) < descriptorsMin) return bad(`${text}: ${advice}`)
  return Number(number) < descriptorsAdvised ? warn(`${text}: ${advice}`) : good(text)
}
