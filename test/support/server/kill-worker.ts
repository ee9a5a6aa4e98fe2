/** Ends a worker of a server, and waits for the successor. */
import type { Server } from './server.ts'
import { until } from '../kit/until.ts'

/**
 * Kills a worker, and resolves when another process has its place.
 *
 * @param which - its place among the processes, the oldest first
 */
export async function killWorker(server: Server, which = 0): Promise<void> {
  const before = server.workerPids()
  const pid = server.workerPid(which)
  process.kill(pid, 'SIGKILL')
  await until(() => {
    const now = server.workerPids()
    return now.length === before.length && !now.includes(pid)
  })
}
