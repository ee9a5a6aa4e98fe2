/**
 * The place of one worker: its shards, its waiting connections, and one process after another. place-state.ts draws its
 * life.
 *
 * A reload; requests wait only from the third step to the fourth:
 *
 *   prepare    the successor is forked and loads what it can     fails: it is ended, nothing has changed
 *   settle     the worker finishes what takes long               it dies: the successor takes over immediately
 *   leave      connections wait; the worker closes the shards    it hangs: it is killed
 *   serve      the successor opens them and gets connections     fails: it is ended, the worker opens them again
 *   retire     the worker forwards requests on its connections to the successor, and exits after the last connection
 */
import { type Clock, sleep, type Timer } from '../../kit/clock.ts'
import {
  closeMarginMs,
  controlCallMs,
  leaveMs,
  retireMs,
  retireResponsesMs,
  settleMs,
  slotsPerWorker,
  workerStartMs,
} from '../limits.ts'
import type { EventLog } from '../event-log.ts'
import { drainMs } from '../../kit/limits.ts'
import { CrashMemory } from './crash-memory.ts'
import type { HandOff } from './hand-off.ts'
import { type PlaceMode, PlaceState } from './place-state.ts'
import type { WorkerStart } from '../channel/worker-control.ts'
import type { Counters, Log } from '../../kit/surroundings.ts'
import type { NodeLinks } from '../node-links.ts'
import { PlaceShards } from './place-shards.ts'
import type { ShardAssignment } from '../shard-assignment.ts'
import type { ShardMap } from '../shard-map.ts'
import type { ShardTable } from '../shard-table.ts'
import { type WatchdogTimes, watchWorker } from './watchdog.ts'
import { WorkerChild } from './worker-child.ts'

export interface WorkerPlaceOptions {
  readonly worker: number
  readonly handOff: HandOff
  readonly clock: Clock
  readonly log: Log
  readonly counters?: Counters | undefined
  /** The log of events for the operator, which the workers report to and read. */
  readonly events: EventLog
  readonly map: ShardMap
  readonly shardTable: ShardTable
  /** The compiled entry file of a worker; it calls `runWorker`. */
  readonly workerFile: string
  readonly runDir: string
  /** Cloned to every worker's `prepare`; a reload may bring others. */
  readonly settings: unknown
  /** Added to the environment of the workers. */
  readonly env?: Readonly<Record<string, string>>
  readonly watchdogTimes?: WatchdogTimes
  /** The shards that this node has. */
  readonly assignment: ShardAssignment
  /** Where the workers of this node accept links of other nodes, and how both sides prove that they belong together. */
  readonly links?: NodeLinks | undefined
}

type WorkerPast = Pick<WorkerStart, 'triesAgain' | 'crash'>

/**
 * This many replaced workers of one place may be alive. With the worker and its successor they use all four metric slots
 * (`slotsPerWorker`).
 */
const retiringWorkersMax = 2
/** After this lifetime a worker that dies is restarted immediately again, with the first of the delays above. */
const workerSettledMs = 10_000

export class WorkerPlace {
  readonly #options: WorkerPlaceOptions
  readonly shards: PlaceShards
  #settings: unknown
  /** The process that has the shards or opens them. */
  #current: WorkerChild | undefined
  /** The process that will get them, during a reload. */
  #next: WorkerChild | undefined
  /** Processes that had the shards and end when their connections do. */
  readonly #retiring = new Set<WorkerChild>()
  /** The process that has the shards open, as long as it lives. */
  #serving: WorkerChild | undefined
  readonly #state: PlaceState
  #generation = 0
  readonly #restart: RestartPause
  #starting: Promise<void> | undefined
  readonly #crashes = new CrashMemory()
  /** How the last process that served has ended, if it should not have; undefined once a successor serves. */
  #death: string | undefined
  /** Set while the shards change hands. */
  #moving: Promise<void> | undefined

  constructor(options: WorkerPlaceOptions) {
    this.#options = options
    this.#settings = options.settings
    this.#state = new PlaceState(options.worker, options.clock, options.shardTable)
    this.#restart = new RestartPause(options.clock)
    this.shards = new PlaceShards({
      ...options,
      serving: () => this.#serving,
      processes: () => [...this.#occupants(), this.#next].filter((child) => child !== undefined),
    })
  }

  get pid(): number {
    return this.#current?.pid ?? -1
  }

  /**
   * Starts a process. Rejects, with the process gone, if the worker refuses to start, dies on the way or takes too long.
   * With `triesAgain` it opens the shards that were set aside before.
   */
  start({ triesAgain }: { readonly triesAgain: boolean }): Promise<void> {
    const starting = this.#start(triesAgain)
    const forget = (): void => {
      this.#starting = undefined
    }
    this.#starting = starting.then(forget, forget)
    return starting
  }

  /**
   * Replaces the worker by a new process with these settings. If that fails, this rejects and the current process goes on
   * with its own settings.
   */
  async reload(settings: unknown): Promise<void> {
    await this.#untilFewRetire()
    // Check this after the wait: the worker may have died during it and be replaced already.
    await this.#starting
    const before = this.#settings
    this.#settings = settings
    try {
      await (this.#serving === undefined ? this.#startAnew() : this.#replace())
    } catch (error) {
      this.#settings = before
      throw error
    }
  }

  async drain(): Promise<void> {
    await this.#stop()
    await Promise.all(this.#occupants().map((each) => each.tell('drain', drainMs + closeMarginMs)))
  }

  async close(): Promise<void> {
    await this.#stop()
    await Promise.all(
      this.#occupants().map(async (each) => {
        await each.tell('close', drainMs)
        each.disconnect()
        await Promise.race([each.gone, sleep(this.#options.clock, closeMarginMs)])
      }),
    )
  }

  async kill(): Promise<void> {
    this.#to('stopped')
    this.#restart.cancel()
    const all = [this.#current, this.#next, ...this.#retiring].filter((each) => each !== undefined)
    await Promise.all(all.map((child) => child.end()))
  }

  /** Starts again after a death by a damaged shard: the next process sets that shard aside, so the server can still start. */
  async #start(triesAgain: boolean): Promise<void> {
    for (let deaths = 0; ; deaths++) {
      try {
        await this.#startOnce(triesAgain && deaths === 0)
        return
      } catch (error) {
        const crash = this.#crashes.last
        if (crash === undefined || this.#state.isStopped || deaths > this.shards.range.length)
          throw error
        const { worker, log } = this.#options
        log.error({ worker }, `worker was ended by ${crash.signal} while it opened its shards`)
      }
    }
  }

  async #startOnce(triesAgain: boolean): Promise<void> {
    const child = this.#fork()
    this.#current = child
    if (!this.#state.isStopped) this.#to('starting')
    this.shards.assign(child.generation)
    let open: readonly number[]
    try {
      await this.#prepare(child, { triesAgain, crash: this.#crashes.last })
      open = await child.control.call('serve', [this.shards.openings()], workerStartMs)
    } catch (error) {
      await this.#discard(child)
      if (this.#state.mode === 'starting') this.#to('empty')
      throw error
    }
    this.#serves(child, open)
  }

  /** Starts a process for a worker that has died, and that could perhaps not be started with the previous settings. */
  async #startAnew(): Promise<void> {
    if (this.#state.isStopped) throw ending()
    this.#restart.cancel()
    try {
      await this.start({ triesAgain: true })
    } catch (error) {
      this.#restartLater()
      throw error
    }
  }

  async #replace(): Promise<void> {
    const old = this.#current
    if (this.#state.isStopped || old === undefined) throw ending()
    const next = this.#fork()
    this.#next = next
    const { log, worker } = this.#options
    let isPrepared = false
    try {
      await this.#prepare(next, { triesAgain: true, crash: undefined })
      log.info({ worker, generation: next.generation }, 'a successor is being prepared')
      isPrepared = true
      await this.#takeOver(old, next)
    } catch (error) {
      await this.#discard(next)
      if (isPrepared && this.#state.mode === 'serving') await this.#resume(old)
      throw error
    } finally {
      this.#next = undefined
      if (this.#serving === undefined) this.#restartLater()
    }
  }

  async #takeOver(old: WorkerChild, next: WorkerChild): Promise<void> {
    if (this.#serving !== undefined) {
      const { log, worker } = this.#options
      log.info({ worker }, 'the worker finishes what takes long, such as deliveries')
      await old.tell('settle', settleMs)
    }
    if (this.#state.isStopped) throw ending()
    this.#moving = this.shards.exclusively(() => this.#move(old, next))
    try {
      await this.#moving
    } finally {
      this.#moving = undefined
    }
  }

  async #move(old: WorkerChild, next: WorkerChild): Promise<void> {
    const { clock, handOff, log, worker } = this.#options
    const heldMs = clock.monotonicMs()
    handOff.hold(old)
    if (this.#serving !== undefined && !(await old.tell('leave', leaveMs))) {
      this.#options.shardTable.countHang(this.#options.worker)
      await old.end()
    }
    const leftMs = clock.monotonicMs()
    const open = await next.control.call('serve', [this.shards.openings()], workerStartMs)
    // The old process has died or is replaced now: in both cases its end must not start another one.
    const isAlive = this.#serving !== undefined
    this.#serves(next, open)
    if (isAlive) this.#retire(old)
    const tookMs = {
      leave: Math.round(leftMs - heldMs),
      open: Math.round(clock.monotonicMs() - leftMs),
    }
    log.info({ worker, tookMs }, 'the shards of a worker have changed hands')
  }

  /** Lets the old process serve again; if it has closed its shards, it opens them again. */
  async #resume(old: WorkerChild): Promise<void> {
    try {
      const openings = this.shards.openings()
      const open = await old.control.call('resume', [openings, this.#crashes.last], workerStartMs)
      this.shards.serves(old, open)
      this.#options.handOff.attach(old)
    } catch (error) {
      const { worker, log } = this.#options
      log.error(
        { worker, error: String(error) },
        'a worker could not continue after a failed reload',
      )
      await old.end()
    }
  }

  #retire(old: WorkerChild): void {
    this.#retiring.add(old)
    void old.tell('retire', controlCallMs)
    this.#options.clock.after(retireMs + retireResponsesMs + drainMs, () => old.kill())
  }

  async #untilFewRetire(): Promise<void> {
    while (this.#retiring.size >= retiringWorkersMax && !this.#state.isStopped) {
      await Promise.race(Array.from(this.#retiring, ({ gone }) => gone))
    }
  }

  #fork(): WorkerChild {
    const { clock, workerFile, env, events, handOff, log, worker } = this.#options
    // Successive generations use the metric slots in turn: skip those that other living processes of this place use.
    const taken = [...this.#occupants()].map(({ generation }) => generation % slotsPerWorker)
    do this.#generation++
    while (taken.includes(this.#generation % slotsPerWorker))
    // LevelDB's synced writes block threads of libuv's pool; dns.lookup must not wait for them.
    const threads = { UV_THREADPOOL_SIZE: String(2 * this.shards.range.length + 8) }
    const generation = this.#generation
    const place = { worker, generation, handOff, events }
    return new WorkerChild({ ...place, clock, log, workerFile, env: { ...env, ...threads } })
  }

  async #prepare(child: WorkerChild, past: WorkerPast): Promise<void> {
    const { worker, map, runDir, links } = this.#options
    const { generation } = child
    const { workers, shards: shardCount } = map
    const { range: shards, routes } = this.shards
    const own = { worker, workers, shardCount, shards, routes, links, generation, runDir, ...past }
    await child.prepare({ ...own, settings: this.#settings })
  }

  #serves(child: WorkerChild, open: readonly number[]): void {
    const { clock, handOff, worker, log } = this.#options
    const { generation } = child
    this.#current = child
    this.#serving = child
    if (!this.#state.isStopped) this.#to('serving')
    this.shards.serves(child, open)
    handOff.attach(child)
    log.info({ worker, generation, workerPid: child.pid }, 'worker serves')
    const servedFromMs = clock.monotonicMs()
    watchWorker(child, this.#options)
    this.#reportRestart()
    void child.gone.then((how) => this.#ended(child, how, clock.monotonicMs() - servedFromMs))
  }

  #reportRestart(): void {
    const { clock, events, worker } = this.#options
    if (this.#death === undefined) return
    const reason = `it ${this.#death}`
    this.#death = undefined
    this.#options.counters?.add('workers_restarted', 1)
    events.report({ type: 'worker.restarted', timeMs: clock.nowMs(), worker, reason })
  }

  #ended(child: WorkerChild, how: string, livedMs: number): void {
    const { handOff, worker, log } = this.#options
    handOff.detach(child)
    this.shards.release(child.generation)
    const wasReplaced = this.#retiring.delete(child)
    if (!wasReplaced) this.#serving = undefined
    if (this.#state.isStopped) return
    if (wasReplaced) {
      log.info({ worker, generation: child.generation }, `the replaced worker ${how}`)
      return
    }
    this.#to('empty')
    this.#death = how
    this.#noteEnd(child)
    log.error({ worker, livedMs: Math.round(livedMs) }, `worker ${how}`)
    if (livedMs >= workerSettledMs) this.#restart.reset()
    // A successor that is ready takes over; otherwise the code that waits for it restarts the worker.
    if (this.#next === undefined) this.#restartLater()
  }

  #restartLater(): void {
    if (this.#state.isStopped) return
    this.#to('waiting')
    this.#restart.begin(() => {
      this.start({ triesAgain: false }).catch((error: unknown) => {
        const { worker, log } = this.#options
        log.error({ worker, error: String(error) }, 'worker could not be restarted')
        this.#restartLater()
      })
    })
  }

  /** The process may have counted metrics and opened connections before it was lost, so it is released, too. */
  async #discard(child: WorkerChild): Promise<void> {
    await child.end()
    this.#noteEnd(child)
    this.shards.release(child.generation)
  }

  #noteEnd({ endSignal }: WorkerChild): void {
    this.#crashes.note(endSignal, this.#options.clock.monotonicMs())
  }

  /** The processes that were handed connections. */
  #occupants(): readonly WorkerChild[] {
    const serving = this.#serving
    return serving === undefined ? [...this.#retiring] : [serving, ...this.#retiring]
  }

  #to(mode: PlaceMode): void {
    this.#state.to(mode, this.#current)
  }

  /** Resolves when no shards are changing hands any more, or after `drainMs`. */
  async #stop(): Promise<void> {
    this.#to('stopped')
    this.#restart.cancel()
    await Promise.race([this.#moving?.catch(() => undefined), sleep(this.#options.clock, drainMs)])
  }
}

function ending(): Error {
  return new Error('the server is ending')
}

/**
 * A worker that died is started again after these delays, the last one repeated. The first start is immediate because
 * requests wait 4 s; a worker that cannot start tries once a second, so that it does not burn a CPU.
 */
export const workerRestartDelaysMs: readonly number[] = [0, 250, 500, 1_000]

/** The pause before a worker that died, or that could not be started, is started again. It grows with each failure in a row. */
export class RestartPause {
  readonly #clock: Clock
  #timer: Timer | undefined
  #failures = 0

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Calls `start` after the pause. An earlier pause ends without its call. */
  begin(start: () => void): void {
    this.cancel()
    const last = workerRestartDelaysMs.length - 1
    const delayMs = workerRestartDelaysMs[Math.min(this.#failures, last)] ?? 0
    this.#failures++
    this.#timer = this.#clock.after(delayMs, start)
  }

  cancel(): void {
    this.#timer?.cancel()
  }

  /** Call this when a worker has served for long enough: the next pause is the shortest one. */
  reset(): void {
    this.#failures = 0
  }
}
