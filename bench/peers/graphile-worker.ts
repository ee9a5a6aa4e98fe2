/**
 * graphile-worker: jobs in PostgreSQL, each with the queue name of its queue, which keeps an order. A push is one call of
 * `add_jobs` with all of its events.
 */
import type { Peer, PeerEvent, PushedEvent } from './peer.ts'
import { peerModule } from './peer-module.ts'
import { postgresClient, postgresUrl, startPostgres } from './postgres-server.ts'

const lanes = 4
/** Each look for a job locks the rows of all queues that are free, so more workers find none and wait. */
const workers = 1
const pollIntervalMs = 50
const task = 'event'

const addJobs = `
  SELECT count(*) FROM graphile_worker.add_jobs(
    ARRAY(SELECT json_populate_recordset(null::graphile_worker.job_spec, $1::json)))`

/** The parts of graphile-worker that are used. */
interface Runner {
  readonly events: { on(event: 'job:complete', listener: () => void): void }
}
interface RunnerOptions {
  readonly connectionString: string
  readonly concurrency: number
  readonly maxPoolSize: number
  readonly pollInterval: number
  readonly noHandleSignals: true
  readonly logger: unknown
  readonly taskList: Readonly<Record<string, (payload: PeerEvent) => void>>
}
interface WorkerModule {
  runMigrations(options: { readonly connectionString: string }): Promise<void>
  run(options: RunnerOptions): Promise<Runner>
  readonly Logger: new (factory: () => () => void) => unknown
}

export const graphileWorker: Peer = {
  lanes,
  batchMax: 500,
  isSlow: true,
  waitingMax: 200,
  start: (context) =>
    startPostgres(context, (connectionString) => {
      return peerModule<WorkerModule>('graphile-worker').runMigrations({ connectionString })
    }),
  async connect(address) {
    const url = postgresUrl(address)
    const clients = await Promise.all(Array.from({ length: lanes }, () => postgresClient(url)))
    return {
      push: async (lane, events) => {
        const values = [JSON.stringify(events.map(jobOf))]
        await clients[lane]?.query({ name: 'add', text: addJobs, values })
      },
    }
  },
  async consume(address, _queues, sink) {
    const worker = peerModule<WorkerModule>('graphile-worker')
    const runner = await worker.run({
      connectionString: postgresUrl(address),
      concurrency: workers,
      maxPoolSize: workers + 2,
      pollInterval: pollIntervalMs,
      noHandleSignals: true,
      logger: new worker.Logger(() => () => undefined),
      taskList: { [task]: (payload) => sink.arrived(payload) },
    })
    runner.events.on('job:complete', () => sink.confirmed(1))
  },
}

function jobOf({ queue, event }: PushedEvent): object {
  return { identifier: task, payload: event, queue_name: `queue-${queue}` }
}
