/**
 * A worker process: takes the connections the primary hands over, serves them with the given application, and
 * obeys the primary's control calls.
 *
 *   born --start--> serving --drain--> draining --close--> closed, then the primary disconnects and it exits
 *
 * It ends by itself when the primary is gone, at once: everything it has accepted is durable, and a worker
 * without its primary would hold the shards against the next server. Signals to the process group (Ctrl-C) are
 * ignored: the primary says when.
 */
import type { IncomingMessage, RequestListener } from 'node:http'
import type { Clock } from '../clock.ts'
import { sleep } from '../clock.ts'
import { drainMs } from '../limits.ts'
import { isMessage, type ReadyMessage, type TakenMessage } from './channel-message.ts'
import { ConnectionInbox, inboxDescriptor } from './connection-inbox.ts'
import { exposeControl } from './control.ts'
import type { ListenerKind } from './listener.ts'
import type { Log } from './log.ts'
import { Peers } from './peers.ts'
import { RareWarning } from './rare-warning.ts'
import { WorkerServers } from './worker-servers.ts'

/** What the primary tells a worker when it starts. Everything in it is cloned over the process channel. */
export interface WorkerStart {
  /** The worker's place, 0..workers-1; a successor has the same. */
  readonly worker: number
  readonly workers: number
  /** All shards of the server, and those this worker owns. */
  readonly shardCount: number
  readonly shards: readonly number[]
  /** Counts the processes in this place; the shard table names it. */
  readonly generation: number
  /** The directory of the sockets between workers. */
  readonly runDir: string
  /** The options of the server, as `runPrimary` got them. */
  readonly settings: unknown
}

export interface WorkerApp {
  readonly handlers: Readonly<Record<ListenerKind, RequestListener>>
  /** The usual one unless given. */
  readonly botRequestTimeoutMs?: number | undefined
  /** Whether this request to the private listener may take as long as it likes to arrive. */
  mayLast?(request: IncomingMessage): boolean
  /** A client's connection was given up or refused because there were too many. */
  onRefused?(): void
  /** Answers waiting polls with `[]` and ends what lasts; new requests may still come until `close`. */
  drain(): Promise<void>
  /** Closes the stores; nothing is called after it. */
  close(): Promise<void>
}

/** The control interface of a worker. */
export interface WorkerControl {
  /** Resolves when the worker serves its shards and listens for its peers. */
  start(start: WorkerStart): Promise<void>
  /** Resolves when no request is being answered any more, or after `drainMs`. */
  drain(): Promise<void>
  close(): Promise<void>
}

export interface WorkerOptions {
  readonly clock: Clock
  readonly log: Log
  /** Makes the application: opens the shards and rejects, with a message for people, where that cannot be. */
  start(start: WorkerStart, peers: Peers): Promise<WorkerApp>
}

/** Makes this process a worker of the cluster. Called once, from the file given to `runPrimary`. */
export function runWorker(options: WorkerOptions): void {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, ignore)
  process.once('disconnect', () => process.exit(0))
  const worker = new WorkerProcess(options)
  exposeControl<WorkerControl>(process, {
    start: (start) => worker.start(start),
    drain: () => worker.drain(),
    close: () => worker.close(),
  })
  process.on('message', (message: unknown) => {
    if (isMessage(message, 'connections')) worker.takeConnections()
  })
  // node:cluster listens to 'message' itself, so Node keeps nothing for a late listener: what the primary sent
  // before this line would be lost, and it waits for it.
  const ready: ReadyMessage = { postbote: 'ready' }
  process.send?.(ready, undefined, undefined, ignore)
}

class WorkerProcess {
  readonly #options: WorkerOptions
  readonly #inbox = new ConnectionInbox(inboxDescriptor)
  readonly #noDescriptors: RareWarning
  #app: WorkerApp | undefined
  #servers: WorkerServers | undefined
  #peers: Peers | undefined

  constructor(options: WorkerOptions) {
    this.#options = options
    this.#noDescriptors = new RareWarning(options, 'no descriptors are free for connections')
  }

  async start(start: WorkerStart): Promise<void> {
    const { clock, log } = this.#options
    const { runDir, worker } = start
    this.#peers = new Peers({ clock, log, runDir })
    this.#app = await this.#options.start(start, this.#peers)
    this.#servers = new WorkerServers({ ...this.#app, clock, log, runDir, worker })
    await this.#servers.listen()
  }

  takeConnections(): void {
    const { lastId, lostIds, connections } = this.#inbox.receive()
    // Before anything is read: an acknowledged connection is never given to another worker.
    const taken: TakenMessage = { postbote: 'taken', id: lastId, lostIds }
    process.send?.(taken, undefined, undefined, ignore)
    if (lostIds.length > 0) this.#noDescriptors.note({ connections: lostIds.length })
    // The primary hands over only after start() has resolved.
    for (const connection of connections) this.#servers?.accept(connection)
  }

  async drain(): Promise<void> {
    const { clock, log } = this.#options
    this.#servers?.startDraining()
    const drained = Promise.all([this.#app?.drain(), this.#servers?.idle()])
    await Promise.race([drained, sleep(clock, drainMs)])
    const open = this.#servers?.open ?? 0
    if (open > 0) log.warn({ open }, 'some requests were not answered in time')
  }

  async close(): Promise<void> {
    this.#servers?.close()
    this.#peers?.close()
    await this.#app?.close()
  }
}

function ignore(): void {
  // Nothing to do.
}
