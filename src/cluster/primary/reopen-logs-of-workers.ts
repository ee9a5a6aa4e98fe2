/** Tells every worker that the log file was renamed, including those that a reload has replaced and that are still ending. */
import cluster from 'node:cluster'
import type { ReopenLogMessage } from '../channel/channel-message.ts'

/** A worker that does not receive messages yet opens the file later, so under its new name. */
export function reopenLogsOfWorkers(): void {
  const message: ReopenLogMessage = { postbote: 'reopen-log' }
  for (const worker of Object.values(cluster.workers ?? {})) {
    // Without a channel the worker is ending.
    if (worker?.isConnected() === true) worker.process.send(message, undefined, undefined, ignore)
  }
}

function ignore(): void {
  // An error means that the channel is closing.
}
