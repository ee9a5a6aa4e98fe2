/**
 * How many connections a process may hold. Without a bound of its own it meets the one of the system, and there it does not
 * choose what fails: libuv closes new connections without a word, and LevelDB cannot open its next log, which poisons a
 * shard. So a quarter of the descriptors, and 64, are kept for everything else; in a worker 128.
 *
 * Node raises the soft limit to the hard one at its start, so the number read here is what `ulimit -Hn` says.
 */
import { readFileSync } from 'node:fs'
import {
  connectionDescriptorsShare,
  connectionsMin,
  handOffsInFlightMax,
  otherDescriptorsMin,
} from '../../limits.ts'

/** Infinity where the system does not say how many descriptors there are. */
export function connectionLimit(readLimits: () => string = limitsOfProcess): number {
  const [, limit] = /^Max open files +(\d+) /m.exec(readLimits()) ?? []
  if (limit === undefined) return Infinity
  const share = Math.floor(Number(limit) * connectionDescriptorsShare)
  return Math.max(share - otherDescriptorsMin, connectionsMin)
}

/** A turn's connections have descriptors before they are turned away: a flood is not to take the last ones with them. */
export function workerConnectionLimit(readLimits: () => string = limitsOfProcess): number {
  return Math.max(connectionLimit(readLimits) - handOffsInFlightMax, connectionsMin)
}

function limitsOfProcess(): string {
  try {
    return readFileSync('/proc/self/limits', 'latin1')
  } catch {
    return ''
  }
}
