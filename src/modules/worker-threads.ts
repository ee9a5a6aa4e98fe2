/** The threads of a worker that work beside its event loop. Each starts when it is needed, and ends when it is idle. */
import type { Config } from '../config/config.ts'
import { entryFiles } from '../entry-files.ts'
import { HelperThread } from '../kit/helper-thread.ts'
import { CheckPool } from '../queue/check/check-pool.ts'
import { CompressPool } from '../queue/compress-pool.ts'
import type { FileFault, VerifyTask } from '../leveldb-files/files-part.ts'
import type { Log } from '../kit/surroundings.ts'

/** Each shard waits for one file at a time, and a machine has no more than 256. */
const verifyPendingMax = 256
/** The verifying thread ends soon after the start, because there is little to verify until the next time. */
const verifyIdleMs = 5_000

export function workerThreads({
  settings,
  log,
}: {
  readonly settings: { readonly config: Pick<Config, 'checkOverBytes'> }
  readonly log: Pick<Log, 'error'>
}) {
  return {
    pool: new CompressPool((error) =>
      log.error({ error: String(error) }, 'the thread that compresses lists failed'),
    ),
    checkPool: new CheckPool({
      updateBytesMin: settings.config.checkOverBytes,
      onFailure: (error) =>
        log.error({ error: String(error) }, 'the thread that checks updates failed'),
    }),
    verifyThread: new HelperThread<VerifyTask, readonly FileFault[]>({
      filename: entryFiles.verifyFile.href,
      pendingMax: verifyPendingMax,
      idleMs: verifyIdleMs,
      onFailure: (error) =>
        log.error({ error: String(error) }, 'the thread that verifies files failed'),
    }),
  }
}
