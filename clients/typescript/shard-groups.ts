/**
 * The groups of shards as the servers last told them, for all streams of a client.
 *
 * A worker takes the pairs of its own shards for half of what it costs to take and forward others. Groups are a hint: with old or wrong ones
 * every pair is stored as ever, and without them there is one lane. So whatever is wrong with them fails no push.
 */
import type { Clock } from '../../src/kit/clock.ts'
import type { ClientOptions } from './client-options.ts'
import { LaneMap, type NodeGroups, type StreamConnection } from './lane-map.ts'
import { PostboteClientError } from './postbote-client-error.ts'
import { readGroups } from './read-groups.ts'
import type { ServerConnection } from './server-connection.ts'

/** Groups of this age are read again while pairs are sent, so a planned move is followed. Chosen: a move costs speed only. */
const groupsAgeMsMax = 30_000

/** What ShardGroups needs from the client. */
export interface ShardGroupsOptions {
  readonly connection: ServerConnection
  /** The nodes that the user has named. If there are any, they are asked in place of `connection`. */
  readonly nodes: readonly ServerConnection[]
  readonly clock: Clock
  readonly onRetry: ClientOptions['onRetry']
}

/** The groups of one client. */
export class ShardGroups {
  readonly #options: ShardGroupsOptions
  readonly #single: LaneMap
  #map: LaneMap
  /** What `#map` was made of. */
  #groups = '[]'
  /** Whether a request has ended since the groups were read, or none was opened yet. */
  #isStale = true
  /** When the groups were read, on the monotonic clock; undefined if only a new request may meet a server that has some. */
  #readMs: number | undefined
  #reading: Promise<PostboteClientError | undefined> | undefined
  #isReported = false
  readonly #closing = new AbortController()

  /** Nothing is read before a stream opens its first request. */
  constructor(options: ShardGroupsOptions) {
    this.#options = options
    this.#single = new LaneMap(options.connection, [])
    this.#map = this.#single
  }

  /** The lanes that streams should have now. Other groups are another object. */
  get map(): LaneMap {
    return this.#map
  }

  /** Notes that a request of a stream has ended: the groups may be others now. */
  onRequestEnded(): void {
    this.#isStale = true
  }

  /** Goes on with one lane until the groups are read again: a server has refused a request because it names a shard. */
  doWithout(): void {
    this.#isStale = false
    this.#use([])
  }

  /**
   * Reads the groups if a request has ended. Called before one is opened.
   *
   * @returns Undefined if there is nothing to read. Resolves with an error if the request would fail with it, too.
   */
  refreshed(): Promise<PostboteClientError | undefined> | undefined {
    return this.#isStale ? this.#read() : undefined
  }

  /** Reads the groups, without a wait for them, if they are old. Called when pairs are sent. */
  refreshOld(): void {
    if (this.#readMs === undefined || this.#reading !== undefined) return
    if (this.#options.clock.monotonicMs() - this.#readMs >= groupsAgeMsMax) void this.#read()
  }

  /** Waits for no answer any more. */
  close(): void {
    this.#closing.abort()
  }

  #read(): Promise<PostboteClientError | undefined> {
    this.#isStale = false
    this.#reading ??= this.#ask().finally(() => (this.#reading = undefined))
    return this.#reading
  }

  async #ask(): Promise<PostboteClientError | undefined> {
    const { connection, nodes, clock } = this.#options
    const { signal } = this.#closing
    const isHasty = nodes.length > 0
    const answers = await Promise.all(
      (isHasty ? nodes : [connection]).map((each) => readGroups(each, { clock, signal, isHasty })),
    )
    this.#readMs = clock.monotonicMs()
    const found = answers.flatMap((answer) =>
      answer instanceof PostboteClientError ? [] : [answer],
    )
    const failures = answers.filter((answer) => answer instanceof PostboteClientError)
    const [failure] = failures
    if (isHasty || failure === undefined) {
      for (const each of failures) this.#reportOnce(each)
      this.#use(found)
    } else if (isWithoutCall(failure)) {
      this.#readMs = undefined
      this.#use([])
    } else if (isOfRequest(failure)) return failure
    else this.#reportOnce(failure)
    return undefined
  }

  #use(nodes: readonly NodeGroups[]): void {
    const [first] = nodes
    const alike = nodes.filter(({ shards }) => shards === first?.shards)
    if (alike.length < nodes.length) this.#reportOnce(new PostboteClientError('UNEXPECTED_ANSWER'))
    const { connection, nodes: all } = this.#options
    const places: readonly StreamConnection[] = all
    const text = JSON.stringify(
      alike.map((node) => [places.indexOf(node.connection), node.shards, node.groups]),
    )
    if (text === this.#groups) return
    this.#groups = text
    this.#map = alike.length === 0 ? this.#single : new LaneMap(connection, alike)
  }

  /** No push fails because of it, so nobody would see it otherwise. */
  #reportOnce(error: PostboteClientError): void {
    if (isWithoutCall(error) || isOfRequest(error)) return
    if (this.#isReported || this.#closing.signal.aborted) return
    this.#isReported = true
    this.#options.onRetry?.({ error, attempt: 1, delayMs: 0 })
  }
}

/** An older server, a proxy that knows some paths only, or a key that may push only. */
function isWithoutCall({ status }: PostboteClientError): boolean {
  return status === 403 || status === 404 || status === 405
}

/** Whether a request of a stream would fail for the same reason. */
function isOfRequest({ code }: PostboteClientError): boolean {
  return code === 'CONNECTION_FAILED' || code === 'UNAUTHORIZED'
}
