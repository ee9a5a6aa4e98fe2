/**
 * How many connections a process may hold. Without a bound of its own the process would reach the limit of the system,
 * and then it cannot choose what fails: libuv closes new connections silently, and LevelDB cannot open its next log,
 * which poisons a shard. So the primary reserves 25 % of its descriptors plus 64 for everything else; each worker
 * reserves 25 % plus 128.
 *
 * Node raises the soft limit to the hard limit at its start, so the number read here is that of `ulimit -Hn`.
 */
import { readFileSync } from 'node:fs'
import { handOffsInFlightMax } from './limits.ts'

/**
 * Connections of clients may take this share of a process's descriptors; the rest is for the store, webhooks and other
 * workers.
 */
const connectionDescriptorsShare = 0.75
/** This many descriptors are reserved in addition: a worker with four shards has about as many open by itself. */
const otherDescriptorsMin = 64
/** A process may hold at least this many connections, even if there are hardly any descriptors. */
const connectionsMin = 16

/** Returns how many connections the primary may hold; Infinity if the system does not say how many descriptors there are. */
export function connectionLimit(readLimits: () => string = limitsOfProcess): number {
  const [, limit] = /^Max open files +(\d+) /m.exec(readLimits()) ?? []
  if (limit === undefined) return Infinity
  const share = Math.floor(Number(limit) * connectionDescriptorsShare)
  return Math.max(share - otherDescriptorsMin, connectionsMin)
}

/**
 * Returns how many connections a worker may hold. A worker receives up to 64 connections in one turn of the event loop
 * and each has a descriptor before the worker can refuse it. Those 64 are reserved in addition, so that a flood does not
 * take the last descriptors.
 */
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
