import type { Server } from './server.ts'

export interface ServingLine {
  readonly worker: number
  readonly workerPid: number
}

/** Returns the log lines of workers that began to serve. */
export function servingLines(server: Server): ServingLine[] {
  const lines = server.output().split('\n')
  return lines
    .filter((line) => line.includes('worker serves'))
    .map((line) => {
      const worker = Number(/"worker":(\d+)/.exec(line)?.[1])
      const workerPid = Number(/"workerPid":(\d+)/.exec(line)?.[1])
      return { worker, workerPid }
    })
}
