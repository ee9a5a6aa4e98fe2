/**
 * The place of one worker: its shards, its waiting connections, and one process after another.
 *
 *   empty -> starting -> serving -> (dies) waiting -> starting -> ...
 *   any -> stopped, from where nothing is started again
 */
import type { Clock, Timer } from '../clock.ts'
import { sleep } from '../clock.ts'
import {
  closeMarginMs,
  drainMs,
  workerRestartDelaysMs,
  workerSettledMs,
  workerStartMs,
} from '../limits.ts'
import type { HandOff } from './hand-off.ts'
import type { Log } from './log.ts'
import type { ShardMap } from './shard-map.ts'
import type { ShardTable } from './shard-table.ts'
import { WorkerChild } from './worker-child.ts'

export interface WorkerPlaceOptions {
  readonly worker: number
  readonly handOff: HandOff
  readonly clock: Clock
  readonly log: Log
  readonly map: ShardMap
  readonly shardTable: ShardTable
  /** The compiled entry file of a worker; it calls `runWorker`. */
  readonly workerFile: string
  readonly runDir: string
  /** Cloned to every worker's `start`. */
  readonly settings: unknown
  /** Added to the environment of the workers. */
  readonly env?: Readonly<Record<string, string>>
}

export class WorkerPlace {
  readonly #options: WorkerPlaceOptions
  readonly #shards: readonly number[]
  #child: WorkerChild | undefined
  #isServing = false
  #isStopped = false
  #generation = 0
  #failures = 0
  #restart: Timer | undefined

  constructor(options: WorkerPlaceOptions) {
    this.#options = options
    this.#shards = options.map.shardsOf(options.worker)
  }

  get pid(): number {
    return this.#child?.pid ?? -1
  }

  /** Rejects, with the process gone, when the worker refuses to start, dies on the way or takes too long. */
  async start(): Promise<void> {
    const { clock, handOff, shardTable, worker, log } = this.#options
    const generation = ++this.#generation
    for (const shard of this.#shards) shardTable.assign(shard, { worker, generation })
    const child = this.#fork()
    this.#child = child
    try {
      await Promise.race([child.ready, endedEarly(child), startedLate(clock)])
      await child.control.call('start', [this.#startOf(generation)], workerStartMs)
    } catch (error) {
      child.kill()
      await child.gone
      // It may have counted, and opened connections, before it was lost.
      shardTable.release({ worker, generation })
      throw error
    }
    for (const shard of this.#shards) shardTable.markServing(shard, generation)
    this.#isServing = true
    handOff.attach(child)
    log.info({ worker, generation, workerPid: child.pid }, 'worker serves')
    const servedFromMs = clock.monotonicMs()
    void child.gone.then((how) => this.#ended(child, how, clock.monotonicMs() - servedFromMs))
  }

  async drain(): Promise<void> {
    this.#stop()
    if (!this.#isServing) return
    await this.#tell('drain', drainMs + closeMarginMs)
  }

  async close(): Promise<void> {
    this.#stop()
    const child = this.#child
    if (!this.#isServing || child === undefined) return
    await this.#tell('close', drainMs)
    child.disconnect()
    await Promise.race([child.gone, sleep(this.#options.clock, closeMarginMs)])
  }

  async kill(): Promise<void> {
    this.#stop()
    if (this.#child === undefined) return
    this.#child.kill()
    await this.#child.gone
  }

  #fork(): WorkerChild {
    const { clock, workerFile, env, handOff } = this.#options
    // LevelDB's synced writes block threads of libuv's pool; dns.lookup must not wait behind them.
    const threads = { UV_THREADPOOL_SIZE: String(2 * this.#shards.length + 8) }
    return new WorkerChild({ clock, workerFile, handOff, env: { ...env, ...threads } })
  }

  #startOf(generation: number) {
    const { worker, map, runDir, settings } = this.#options
    const { workers, shards: shardCount } = map
    return { worker, workers, shardCount, shards: this.#shards, generation, runDir, settings }
  }

  #ended(child: WorkerChild, how: string, livedMs: number): void {
    const { handOff, shardTable, worker, log } = this.#options
    this.#isServing = false
    handOff.detach(child)
    shardTable.release({ worker, generation: this.#generation })
    if (this.#isStopped) return
    log.error({ worker, livedMs: Math.round(livedMs) }, `worker ${how}`)
    if (livedMs >= workerSettledMs) this.#failures = 0
    this.#restartLater()
  }

  #restartLater(): void {
    if (this.#isStopped) return
    const last = workerRestartDelaysMs.length - 1
    const delayMs = workerRestartDelaysMs[Math.min(this.#failures, last)] ?? 0
    this.#failures++
    this.#restart = this.#options.clock.after(delayMs, () => {
      this.start().catch((error: unknown) => {
        const { worker, log } = this.#options
        log.error({ worker, error: String(error) }, 'worker could not be restarted')
        this.#restartLater()
      })
    })
  }

  async #tell(name: 'drain' | 'close', timeoutMs: number): Promise<void> {
    try {
      await this.#child?.control.call(name, [], timeoutMs)
    } catch (error) {
      const { worker, log } = this.#options
      log.warn({ worker, error: String(error) }, `worker did not ${name} in order`)
    }
  }

  #stop(): void {
    this.#isStopped = true
    this.#restart?.cancel()
  }
}

async function endedEarly(child: WorkerChild): Promise<never> {
  throw new Error(`the worker ${await child.gone} as it started`)
}

async function startedLate(clock: Clock): Promise<never> {
  await sleep(clock, workerStartMs)
  throw new Error(`the worker was not ready after ${workerStartMs} ms`)
}
