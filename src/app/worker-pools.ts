/** The threads of a worker that work for requests. */
import type { Config } from '../config/config.ts'
import type { Log } from '../cluster/log.ts'
import { CheckPool } from '../queue/check-pool.ts'
import { CompressPool } from '../queue/compress-pool.ts'

export interface WorkerPools {
  readonly pool: CompressPool
  readonly checkPool: CheckPool
}

/** Creates the pools. Their threads start when they are needed. */
export function workerPools({ checkOverBytes }: Config, log: Log): WorkerPools {
  return {
    pool: new CompressPool({
      onFailure: (error) =>
        log.error({ error: String(error) }, 'the thread that compresses lists failed'),
    }),
    checkPool: new CheckPool({
      updateBytesMin: checkOverBytes,
      onFailure: (error) =>
        log.error({ error: String(error) }, 'the thread that checks updates failed'),
    }),
  }
}
