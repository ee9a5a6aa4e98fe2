/**
 * A worker process: takes the connections the primary hands over, serves them with the given application, and
 * obeys the primary's control calls.
 *
 *   born --prepare--> prepared --serve--> serving --drain--> draining --close--> closed, then the primary
 *                                         |     ^                               disconnects and it exits
 *                                       leave  resume (its successor could not)
 *                                         v     |
 *                                         left --retire--> sends its connections' requests on, exits by itself
 *
 * It ends by itself when the primary is gone, at once: everything it has accepted is durable, and a worker
 * without its primary would hold the shards against the next server. Signals to the process group (Ctrl-C) are
 * ignored: the primary says when.
 */
import type { IncomingMessage, RequestListener } from 'node:http'
import type { Clock } from '../../clock.ts'
import { sleep } from '../../clock.ts'
import { drainMs, retireAnswersMs, retireGraceMs, retireMs } from '../../limits.ts'
import { isMessage, type ReadyMessage, type TakenMessage } from '../channel/channel-message.ts'
import { ConnectionInbox, inboxDescriptor } from '../channel/connection-inbox.ts'
import { exposeControl } from '../channel/control.ts'
import type { OpenAnswersView } from './departure.ts'
import type { ListenerKind } from '../listener.ts'
import type { Log } from '../log.ts'
import { Peers } from '../forward/peers.ts'
import { RareWarning } from '../rare-warning.ts'
import type { WorkerControl, WorkerCrash, WorkerStart } from '../channel/worker-control.ts'
import { WorkerServers } from './worker-servers.ts'

export interface WorkerApp {
  readonly handlers: Readonly<Record<ListenerKind, RequestListener>>
  /** The usual one unless given. */
  readonly botRequestTimeoutMs?: number | undefined
  /** Whether this request to the private listener may take as long as it likes to arrive. */
  mayLast?(request: IncomingMessage): boolean
  /** Whether this request to the private listener has the admin key. */
  mayPipeline?(request: IncomingMessage): boolean
  /** A client's connection was given up or refused because there were too many. */
  onRefused?(): void
  /** Opens the shards and begins to deliver; called once. Rejects, with a message for people, where that cannot be. */
  open(): Promise<void>
  /** Serves on; resolves when nothing is under way that takes long. */
  settle(answers: OpenAnswersView): Promise<void>
  /** Resolves when the shards are closed. From its call on, requests go to the successor. */
  leave(answers: OpenAnswersView): Promise<void>
  /** Ends what lasts, when the last connections of a replaced worker are to end. */
  finish(): Promise<void>
  /** Answers waiting polls with `[]` and ends what lasts; new requests may still come until `close`. */
  drain(): Promise<void>
  /** Closes the stores, unless `leave` has, and the rest; nothing is called after it. */
  close(): Promise<void>
}

export interface WorkerOptions {
  readonly clock: Clock
  readonly log: Log
  /** Makes the application, its shards not opened. Rejects, with a message for people, where that cannot be. */
  prepare(start: WorkerStart, peers: Peers): Promise<WorkerApp>
}

/** Makes this process a worker of the cluster. Called once, from the file given to `runPrimary`. */
export function runWorker(options: WorkerOptions): void {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, ignore)
  process.once('disconnect', () => process.exit(0))
  const worker = new WorkerProcess(options)
  exposeControl<WorkerControl>(process, {
    ping: () => Promise.resolve(),
    prepare: (start) => worker.prepare(start),
    serve: () => worker.serve(),
    settle: () => worker.settle(),
    leave: () => worker.leave(),
    resume: (crash) => worker.resume(crash),
    retire: () => worker.retire(),
    forgetPeer: (place) => worker.forgetPeer(place),
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

interface Begun {
  readonly start: WorkerStart
  readonly peers: Peers
  readonly app: WorkerApp
  readonly servers: WorkerServers
}

class WorkerProcess {
  readonly #options: WorkerOptions
  readonly #inbox = new ConnectionInbox(inboxDescriptor)
  readonly #noDescriptors: RareWarning
  #begun: Begun | undefined
  #hasLeft = false

  constructor(options: WorkerOptions) {
    this.#options = options
    this.#noDescriptors = new RareWarning(options, 'no descriptors are free for connections')
  }

  async prepare(start: WorkerStart): Promise<void> {
    const { clock, log } = this.#options
    const { runDir, worker } = start
    const peers = new Peers({ clock, log, runDir })
    const app = await this.#options.prepare(start, peers)
    const { handlers, botRequestTimeoutMs } = app
    const servers = new WorkerServers({
      clock,
      log,
      runDir,
      worker,
      handlers,
      botRequestTimeoutMs,
      mayLast: (request) => app.mayLast?.(request) ?? true,
      mayPipeline: (request) => app.mayPipeline?.(request) ?? false,
      onRefused: () => app.onRefused?.(),
    })
    await servers.listen()
    this.#begun = { start, peers, app, servers }
  }

  async serve(): Promise<void> {
    const { app, servers } = this.#work
    await app.open()
    servers.show()
  }

  async settle(): Promise<void> {
    const { app, servers } = this.#work
    await app.settle(() => servers.answers())
  }

  async leave(): Promise<void> {
    const { app, servers } = this.#work
    this.#hasLeft = true
    servers.hide()
    servers.endConnections()
    await app.leave(() => servers.answers())
  }

  /** With a new application: the old one has given up what it had. */
  async resume(crash: WorkerCrash | undefined): Promise<void> {
    const { start: firstStart, peers, app: before, servers } = this.#work
    if (!this.#hasLeft) await this.leave()
    await before.close()
    const start = { ...firstStart, crash, triesAgain: false }
    const app = await this.#options.prepare(start, peers)
    await app.open()
    this.#begun = { start, peers, app, servers }
    this.#hasLeft = false
    servers.goOn(app.handlers)
    servers.show()
  }

  retire(): Promise<void> {
    void this.#retire()
    return Promise.resolve()
  }

  async #retire(): Promise<void> {
    const { app, servers } = this.#work
    const { clock } = this.#options
    await sleep(clock, retireGraceMs)
    await Promise.race([servers.empty(), sleep(clock, retireMs - retireGraceMs)])
    servers.startDraining()
    await Promise.race([Promise.all([app.finish(), servers.idle()]), sleep(clock, retireAnswersMs)])
    await this.close()
    process.exit(0)
  }

  forgetPeer(worker: number): Promise<void> {
    this.#begun?.peers.forget(worker)
    return Promise.resolve()
  }

  takeConnections(): void {
    const { lastId, lostIds, connections } = this.#inbox.receive()
    // Before anything is read: an acknowledged connection is never given to another worker.
    const taken: TakenMessage = { postbote: 'taken', id: lastId, lostIds }
    process.send?.(taken, undefined, undefined, ignore)
    if (lostIds.length > 0) this.#noDescriptors.note({ connections: lostIds.length })
    // The primary hands over only after serve() has resolved.
    for (const connection of connections) this.#begun?.servers.accept(connection)
  }

  async drain(): Promise<void> {
    const { clock, log } = this.#options
    const { app, servers } = this.#work
    servers.startDraining()
    await Promise.race([Promise.all([app.drain(), servers.idle()]), sleep(clock, drainMs)])
    if (servers.open > 0) {
      log.warn({ open: servers.open }, 'some requests were not answered in time')
    }
  }

  async close(): Promise<void> {
    const { app, servers, peers } = this.#work
    servers.close()
    peers.close()
    await app.close()
  }

  get #work(): Begun {
    if (this.#begun === undefined) throw new Error('this worker was not prepared')
    return this.#begun
  }
}

function ignore(): void {
  // Nothing to do.
}
