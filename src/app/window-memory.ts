/** The memory of a worker for pending updates: what `--window-memory` says, or less in a small container or machine. */
import { totalmem } from 'node:os'
import { mib } from '../limits.ts'
import { windowBytesMax, windowMemoryShare } from './limits.ts'

export interface WindowMemoryOptions {
  /** `--window-memory` */
  readonly windowBytes: number | undefined
  readonly workers: number
  /** Of the machine, or of the container if that has less. */
  readonly memoryBytes?: number
}

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
