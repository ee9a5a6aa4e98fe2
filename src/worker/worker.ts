/**
 * A worker process: receives the connections that the primary hands off, serves them with the given application, and
 * carries out the primary's control calls.
 *
 *   born --prepare--> prepared --serve--> serving --drain--> draining --close--> closed, then the primary
 *                                         |     ^                               disconnects and it exits
 *                                       leave  resume (its successor could not serve)
 *                                         v     |
 *                                         left --retire--> forwards its connections' requests, exits by itself
 *
 * A worker exits immediately when the primary is gone: everything that it has accepted is durable, and without its
 * primary it would keep the shards from the next server. It ignores signals to the process group (Ctrl-C), because the
 * primary decides when it ends.
 */
import assert from 'node:assert/strict'
import type { Clock } from '../kit/clock.ts'
import { sleep } from '../kit/clock.ts'
import { peerConnectWaitMs, retireMs, retireResponsesMs } from '../process/limits.ts'
import { drainMs } from '../kit/limits.ts'
import {
  isMessage,
  type ReadyMessage,
  type TakenMessage,
} from '../process/channel/channel-message.ts'
import { ConnectionInbox, inboxDescriptor } from '../process/channel/connection-inbox.ts'
import { Control, exposeControl } from '../process/channel/control.ts'
import type { PrimaryCalls, PrimaryControl } from '../process/channel/primary-control.ts'
import type { OpenResponsesView } from './departure.ts'
import type { Log } from '../kit/surroundings.ts'
import { Peers } from '../links/forward/peers.ts'
import { RareWarning } from '../process/rare-warning.ts'
import { type RouteTable, Routes } from '../process/routes.ts'
import { ShardMap } from '../process/shard-map.ts'
import type { WorkerControl, WorkerCrash, WorkerStart } from '../process/channel/worker-control.ts'
import type { ShardOpening } from '../process/shard-assignment.ts'
import { type ServedApp, WorkerServers } from './worker-servers.ts'

export interface WorkerApp extends ServedApp {
  /**
   * Opens the shards and starts deliveries; called once. Returns the numbers of the open shards. Rejects, with a message for
   * the operator, if that fails; a shard of a database that cannot be opened is left out instead.
   */
  open(openings: readonly ShardOpening[]): Promise<readonly number[]>
  /** Opens one more shard of the database. Rejects if that fails. */
  openShard(opening: ShardOpening): Promise<void>
  /** Answers what is in progress for a shard of the database, and closes it. */
  leaveShard(shard: number, responses: OpenResponsesView): Promise<void>
  /** Drops a shard of the database that belongs to another node. */
  dropShard(shard: number): Promise<void>
  /** The database with this number responds at this life of one of its servers. */
  databaseIsAt?(database: number, server: string): void
  /** Goes on serving; resolves when nothing is under way that takes long. */
  settle(responses: OpenResponsesView): Promise<void>
  /** Resolves when the shards are closed. From the start of this call, requests go to the successor. */
  leave(responses: OpenResponsesView): Promise<void>
  /** Ends long-lived requests, when the last connections of a replaced worker must end. */
  finish(): Promise<void>
  /** Answers waiting polls with `[]` and ends long-lived requests; new requests may still arrive until `close`. */
  drain(): Promise<void>
  /** Closes the stores, unless `leave` did, and everything else; no other call follows. */
  close(): Promise<void>
}

/** The ways to other processes, which outlast an application. */
export interface Ways {
  readonly primary: PrimaryCalls
  readonly peers: Peers
  readonly routes: Routes
}

export interface WorkerOptions {
  readonly clock: Clock
  readonly log: Log
  /** Opens the log file of this process again, after it was renamed. */
  readonly reopenLog?: () => void
  /** Makes the application without opening its shards. Rejects, with a message for the operator, if that fails. */
  prepare(start: WorkerStart, ways: Ways): Promise<WorkerApp>
}

/** Makes this process a worker of the cluster. Called once, from the file that `runPrimary` was given. */
export function runWorker(options: WorkerOptions): void {
  // A terminal and some service managers send them to all processes; the primary decides. At a SIGUSR1 without a listener
  // Node.js would open its debugger.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGUSR1'] as const) {
    process.on(signal, ignore)
  }
  process.once('disconnect', () => process.exit(0))
  const worker = new WorkerProcess(options)
  exposeControl<WorkerControl>(process, {
    ping: () => Promise.resolve(),
    prepare: (start) => worker.prepare(start),
    serve: (openings) => worker.serve(openings),
    openShard: (opening) => worker.openShard(opening),
    leaveShard: (shard) => worker.leaveShard(shard),
    dropShard: (shard) => worker.dropShard(shard),
    setRoutes: (table) => worker.setRoutes(table),
    settle: () => worker.settle(),
    leave: () => worker.leave(),
    resume: (openings, crash) => worker.resume(openings, crash),
    retire: () => worker.retire(),
    drain: () => worker.drain(),
    close: () => worker.close(),
  })
  process.on('message', (message: unknown) => {
    if (isMessage(message, 'connections')) worker.takeConnections()
    else if (isMessage(message, 'reopen-log')) options.reopenLog?.()
  })
  // node:cluster listens to 'message' itself, so Node buffers nothing for a late listener: messages that the primary sent
  // before this line would be lost. The primary waits for `ready`.
  const ready: ReadyMessage = { postbote: 'ready' }
  process.send?.(ready, undefined, undefined, ignore)
}

interface Begun extends Ways {
  readonly start: WorkerStart
  readonly app: WorkerApp
  readonly servers: WorkerServers
}

/** A replaced worker waits at least this long, because a connection may still be in the backlog of its link socket. */
const retireGraceMs = 1_000
/**
 * A worker that ends waits this long for the requests that other nodes answer, as long as for their owner
 * (`peerConnectWaitMs`). Polls are answered at once, so these are calls that take long, or their owner hangs.
 */
const forwardedDrainMs = peerConnectWaitMs

class WorkerProcess {
  readonly #options: WorkerOptions
  readonly #primary: PrimaryCalls
  readonly #inbox = new ConnectionInbox(inboxDescriptor)
  readonly #noDescriptors: RareWarning
  #begun: Begun | undefined
  #hasLeft = false

  constructor(options: WorkerOptions) {
    this.#options = options
    this.#primary = new Control<PrimaryControl>(process, options.clock)
    this.#noDescriptors = new RareWarning(
      options,
      'connections cannot be taken: the process has no free file descriptors',
    )
  }

  async prepare(start: WorkerStart): Promise<void> {
    const { clock, log } = this.#options
    const { runDir, worker } = start
    const map = new ShardMap({ shards: start.shardCount, workers: start.workers })
    const routes = new Routes(map)
    if (start.routes !== undefined) routes.set(start.routes)
    const { links } = start
    const peers = new Peers({ clock, log }, runDir, routes, links?.security)
    const primary = this.#primary
    const app = await this.#options.prepare(start, { peers, primary, routes })
    const servers = new WorkerServers({
      clock,
      log,
      runDir,
      worker,
      tcpLinks: links && { ...links, port: links.port + worker },
      app,
    })
    servers.nodeLeaves(routes.isLeaving)
    await servers.listen()
    this.#begun = { start, peers, primary, routes, app, servers }
  }

  async serve(openings: readonly ShardOpening[]): Promise<readonly number[]> {
    const { app, servers } = this.#work
    const open = await app.open(openings)
    await servers.show()
    return open
  }

  openShard(opening: ShardOpening): Promise<void> {
    return this.#work.app.openShard(opening)
  }

  leaveShard(shard: number): Promise<void> {
    const { app, servers } = this.#work
    return app.leaveShard(shard, () => servers.responses())
  }

  dropShard(shard: number): Promise<void> {
    return this.#work.app.dropShard(shard)
  }

  setRoutes(table: RouteTable): Promise<void> {
    const { app, peers, routes, servers } = this.#work
    for (const [database, server] of table.servers.entries()) {
      if (server !== undefined) app.databaseIsAt?.(database, server)
    }
    // What is under way to a node that is a member no more can be answered by nobody.
    for (const place of routes.set(table)) peers.drop(place)
    servers.nodeLeaves(routes.isLeaving)
    return Promise.resolve()
  }

  async settle(): Promise<void> {
    const { app, servers } = this.#work
    await app.settle(() => servers.responses())
  }

  async leave(): Promise<void> {
    const { app, servers } = this.#work
    this.#hasLeft = true
    servers.hide()
    servers.endConnections()
    await app.leave(() => servers.responses())
  }

  /** This needs a new application, because the old one has given up its shards. */
  async resume(
    openings: readonly ShardOpening[],
    crash: WorkerCrash | undefined,
  ): Promise<readonly number[]> {
    const { start: firstStart, app: before, servers, ...ways } = this.#work
    if (!this.#hasLeft) await this.leave()
    await before.close()
    const start = { ...firstStart, crash, triesAgain: false }
    const app = await this.#options.prepare(start, ways)
    const open = await app.open(openings)
    this.#begun = { ...ways, start, app, servers }
    this.#hasLeft = false
    servers.goOn(app)
    await servers.show()
    return open
  }

  retire(): Promise<void> {
    void this.#retire()
    return Promise.resolve()
  }

  async #retire(): Promise<void> {
    const { app, servers } = this.#work
    const { clock } = this.#options
    servers.leaveLinks()
    await sleep(clock, retireGraceMs)
    await Promise.race([servers.empty(), sleep(clock, retireMs - retireGraceMs)])
    servers.startDraining()
    await Promise.race([
      Promise.all([app.finish(), servers.idle()]),
      sleep(clock, retireResponsesMs),
    ])
    await this.close()
    process.exit(0)
  }

  takeConnections(): void {
    const { lastId, lostIds, connections } = this.#inbox.receive()
    // Acknowledge before reading anything: an acknowledged connection is never given to another worker.
    const taken: TakenMessage = { postbote: 'taken', id: lastId, lostIds }
    process.send?.(taken, undefined, undefined, ignore)
    if (lostIds.length > 0) this.#noDescriptors.note({ connections: lostIds.length })
    // The primary hands connections off only after serve() has resolved.
    for (const connection of connections) this.#begun?.servers.accept(connection)
  }

  async drain(): Promise<void> {
    const { clock, log } = this.#options
    const { app, servers, peers } = this.#work
    servers.startDraining()
    peers.leave()
    const forwards = clock.after(forwardedDrainMs, () => peers.giveUp())
    await Promise.race([Promise.all([app.drain(), servers.idle()]), sleep(clock, drainMs)])
    forwards.cancel()
    if (servers.open > 0) {
      log.warn({ open: servers.open }, 'some requests got no response before the time limit')
    }
  }

  async close(): Promise<void> {
    const { app, servers, peers } = this.#work
    servers.close()
    peers.close()
    await app.close()
  }

  get #work(): Begun {
    assert(this.#begun !== undefined, 'a worker is prepared before it works')
    return this.#begun
  }
}

function ignore(): void {
  // Nothing to do.
}
