/** The memory of a worker for pending updates: what `--window-memory` says, or less in a small container or machine. */
import { totalmem } from 'node:os'
import { mib } from '../kit/limits.ts'

export interface WindowMemoryOptions {
  /** `--window-memory` */
  readonly windowBytes: number | undefined
  readonly workers: number
  /** Of the machine, or of the container if that has less. */
  readonly memoryBytes?: number
}

/** The default of `--window-memory`, if the memory of the machine or container is not small. */
const windowBytesMax = 256 * mib
/**
 * The windows of all workers take this share of a smaller memory, and as much again for webhooks. Chosen: in a container of 320 MiB
 * with one worker, processes at rest take 140 MiB, and what is being sent takes the rest.
 */
const windowMemoryShare = 1 / 8

export function windowBytesOf({
  windowBytes,
  workers,
  memoryBytes = ownMemoryBytes(),
}: WindowMemoryOptions): number {
  if (windowBytes !== undefined) return windowBytes
  const share = Math.floor((memoryBytes * windowMemoryShare) / workers)
  return Math.max(mib, Math.min(windowBytesMax, share))
}

/** Without a limit, what Node.js says of the container is 0, or more than any machine has. */
function ownMemoryBytes(): number {
  return Math.min(totalmem(), process.constrainedMemory() || Infinity)
}
