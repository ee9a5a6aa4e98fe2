/**
 * The primary process: listens, hands connections off to the workers that own them, and keeps the workers alive. It
 * serves no requests and opens no store. Its crash would end the server, so it does as little as possible.
 *
 * The first SIGTERM or SIGINT ends the server in order, with code 0; a second one ends it immediately, with code 1.
 * SIGHUP replaces the workers one by one, without failing a request. SIGUSR1 reopens the log file in all processes.
 */
import cluster from 'node:cluster'
import { chmodSync, mkdirSync } from 'node:fs'
import { sleep } from '../../kit/clock.ts'
import type { Counters } from '../../kit/surroundings.ts'
import type { ReopenLogMessage } from '../channel/channel-message.ts'
import { connectionLimit } from '../connection-limit.ts'
import { ConnectionRouter } from './connection-router.ts'
import { HandOff } from './hand-off.ts'
import { describeAddress, type ListenerOptions } from '../../http/listener.ts'
import { lastingAssignment, type ShardAssignment, type ShardControl } from '../shard-assignment.ts'
import { ShardMap } from '../shard-map.ts'
import { Supervisor, type SupervisorOptions } from './supervisor.ts'
import { Switchboard } from './switchboard.ts'
import { messageOf } from '../../kit/errors.ts'

export interface PrimaryOptions extends Omit<SupervisorOptions, 'map' | 'assignment'> {
  /** The shards that this node has in its databases; undefined if it has all of them for ever. */
  readonly assignment?: ShardAssignment | undefined
  readonly listeners: readonly ListenerOptions[]
  readonly workers: number
  readonly shards: number
  /**
   * Returns what a reload passes to the new workers; throws, with a message for the operator, if the settings are
   * unusable.
   */
  readonly newSettings?: () => unknown
  readonly counters?: Counters
  /** Called for each listener when it is bound. */
  readonly onListening?: (listener: ListenerOptions) => void
  /** Called when a reload begins or ends, and when the server begins to end. */
  readonly onPhase?: (phase: PrimaryPhase) => void
  /** Opens the log file of this process again, after it was renamed. */
  readonly reopenLog?: () => void
  /**
   * Called before the server ends, while it still serves. Returns whether others serve its clients from then on. Never
   * rejects.
   */
  readonly beforeEnd?: () => Promise<boolean>
  /** Ends the process: `process.exit`, except in tests. */
  readonly exit?: (code: number) => void
}

/** What a server does that has started. */
export type PrimaryPhase = 'reloading' | 'reloaded' | 'reload failed' | 'ending'

export interface Primary {
  /** The listeners with the addresses to which they are really bound. */
  readonly addresses: readonly ListenerOptions[]
  workerPids(): readonly number[]
  /** The shards of a database, in the workers. */
  readonly shards: ShardControl
  /**
   * Replaces the workers one by one. Rejects, with a message for the operator, if one cannot be replaced; all go on
   * serving.
   */
  reload(): Promise<void>
  /** Ends the server in order, with code 0, as a SIGTERM does. */
  end(): void
  /** Stops accepting, lets the workers finish their requests (10 s at most), and ends them. */
  close(): Promise<void>
}

/**
 * The connections that wait for one worker may be this share of those that the primary may hold, so that one slow worker
 * does not keep out the clients of the others.
 */
const handOffShare = 1 / 2
/**
 * A node whose clients are served by others gives the last connections that were made to it this long for their requests.
 * Otherwise a load balancer, which can go to another node only if no connection is made, would have to fail them. Chosen: it
 * sends the request right after it has connected, and it connects again a second after it got no answer.
 */
const lastConnectionsMs = 250

/** Resolves when all workers serve. If the server cannot start, this ends all that was started and rejects. */
export async function runPrimary(options: PrimaryOptions): Promise<Primary> {
  const { clock, log, runDir, workers, shards } = options
  const assignment = options.assignment ?? lastingAssignment(shards)
  const map = new ShardMap({ shards, workers })
  makeRunDirectory(runDir)
  const openMax = connectionLimit()
  const waitingMax = Math.ceil(openMax * handOffShare)
  const handOffs = Array.from({ length: workers }, () => new HandOff(clock, { waitingMax }))
  const supervisor = new Supervisor({ ...options, map, assignment }, handOffs)
  const router = new ConnectionRouter(map, assignment, handOffs)
  const switchboard = new Switchboard({
    clock,
    log,
    counters: options.counters,
    openMax,
    route: (owner, connection) => router.route(owner, connection),
  })
  const close = onceOnly(async () => {
    if ((await options.beforeEnd?.()) === true) {
      switchboard.takeNoMore()
      await sleep(clock, lastConnectionsMs)
    }
    switchboard.close()
    await supervisor.close()
    for (const handOff of handOffs) handOff.refuseAll()
  })
  const reloads = new Reloads(() => reloadWorkers(supervisor, options))
  const signals = obeySignals({ ...options, close, reload: () => reloads.request() })
  const addresses: ListenerOptions[] = []
  const listen = async (): Promise<void> => {
    for (const listener of options.listeners) {
      const address = await switchboard.listen(listener)
      const bound = { listener: listener.listener, address }
      addresses.push(bound)
      options.onListening?.(bound)
      log.info({ listener: listener.listener }, `listening on ${describeAddress(address)}`)
    }
  }
  // Listen first: an address in use is found before any shard is opened. Clients that connect before the workers serve wait,
  // as they do while a worker restarts. If there are other nodes, a load balancer should find those instead.
  const listensFirst = options.links === undefined
  try {
    if (listensFirst) await listen()
    await supervisor.start()
    if (!listensFirst) await listen()
    return {
      addresses,
      workerPids: () => supervisor.pids(),
      shards: supervisor,
      end: () => signals.end('drained'),
      reload: () => reloads.request(),
      close: () => close().finally(signals.off),
    }
  } catch (error) {
    await close()
    signals.off()
    throw error
  }
}

async function reloadWorkers(supervisor: Supervisor, options: PrimaryOptions): Promise<void> {
  const { log, newSettings, settings, onPhase } = options
  log.info({}, 'reloading: replacing the workers one by one')
  onPhase?.('reloading')
  try {
    await supervisor.reload(newSettings === undefined ? settings : newSettings())
    log.info({}, 'reloaded')
    onPhase?.('reloaded')
  } catch (error) {
    log.error(
      { error: messageOf(error) },
      'the reload failed; the workers that were not replaced continue',
    )
    onPhase?.('reload failed')
    throw error
  }
}

function makeRunDirectory(path: string): void {
  mkdirSync(path, { recursive: true, mode: 0o700 })
  chmodSync(path, 0o700)
}

interface Signals {
  readonly end: (reason: string) => void
  readonly off: () => void
}

interface SignalOptions
  extends Pick<PrimaryOptions, 'clock' | 'log' | 'exit' | 'onPhase' | 'reopenLog'> {
  readonly close: () => Promise<void>
  readonly reload: () => Promise<void>
}

/**
 * A second signal within this time belongs to the same key press: npm sends on a signal that the terminal has sent to all
 * processes already.
 */
export const signalEchoMs = 50

function obeySignals(options: SignalOptions): Signals {
  const { clock, log, close, reload, exit = (code) => process.exit(code) } = options
  let endingSinceMs: number | undefined
  const end = (signal: string): void => {
    if (endingSinceMs !== undefined) {
      if (clock.monotonicMs() - endingSinceMs > signalEchoMs) exit(1)
      return
    }
    endingSinceMs = clock.monotonicMs()
    log.info({ signal }, 'the server is ending: it responds to open requests')
    options.onPhase?.('ending')
    close().then(
      () => exit(0),
      (error: unknown) => {
        log.error({ error: String(error) }, 'the server did not end cleanly')
        exit(1)
      },
    )
  }
  // A terminal that closes sends this signal, too; it must not end the server.
  const hangUp = (): void => void reload().catch(() => undefined)
  // Without a listener, Node.js would open its debugger at this signal.
  const reopen = (): void => {
    options.reopenLog?.()
    reopenLogsOfWorkers()
  }
  process.on('SIGTERM', end)
  process.on('SIGINT', end)
  process.on('SIGHUP', hangUp)
  process.on('SIGUSR1', reopen)
  return {
    end,
    off() {
      process.off('SIGTERM', end)
      process.off('SIGINT', end)
      process.off('SIGHUP', hangUp)
      process.off('SIGUSR1', reopen)
    },
  }
}

/**
 * Tells every worker that the log file was renamed, including those that a reload has replaced and that are still ending. One
 * that does not receive messages yet opens the file later, so under its new name.
 */
function reopenLogsOfWorkers(): void {
  const message: ReopenLogMessage = { postbote: 'reopen-log' }
  for (const worker of Object.values(cluster.workers ?? {})) {
    // Without a channel the worker is ending.
    if (worker?.isConnected() === true) worker.process.send(message, undefined, undefined, ignore)
  }
}

function ignore(): void {
  // Of a message: the channel is closing. Of an earlier reload: its own caller gets the error.
}

function onceOnly(work: () => Promise<void>): () => Promise<void> {
  let done: Promise<void> | undefined
  return () => (done ??= work())
}

/**
 * Runs reloads one at a time. A reload that is requested while another runs starts after it, because its input may have
 * changed since the running one read it. All requests that arrive during one reload share the next one.
 */
export class Reloads {
  readonly #reload: () => Promise<void>
  #running: Promise<void> | undefined
  #queued: Promise<void> | undefined

  constructor(reload: () => Promise<void>) {
    this.#reload = reload
  }

  /** Resolves when a reload that began after this call is done; rejects if that reload failed. */
  request(): Promise<void> {
    if (this.#running === undefined) return this.#run()
    this.#queued ??= this.#running.catch(ignore).then(() => {
      this.#queued = undefined
      return this.#run()
    })
    return this.#queued
  }

  #run(): Promise<void> {
    const running = this.#reload()
    this.#running = running
    const forget = (): void => {
      if (this.#running === running) this.#running = undefined
    }
    running.then(forget, forget)
    return running
  }
}
