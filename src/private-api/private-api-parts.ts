/** What a worker gives to its private API. Each file of routes takes the parts that it needs, by `Pick`. */
import type { IncomingMessage } from 'node:http'
import type { FastifyRequest } from 'fastify'
import type { BotRegistry } from '../bots/registry.ts'
import type { Clock } from '../kit/clock.ts'
import type { EventPage, EventQuestion } from '../kit/operator-event.ts'
import type { AllHistograms } from '../kit/histograms.ts'
import type { BodyBudget } from '../admission/budgets/body-budget.ts'
import type { LoopPayer } from '../http/loop-payer.ts'
import type { MetricName } from '../kit/metrics.ts'
import type { Shard } from '../shard/shard.ts'
import type { ShardTroubles } from '../shard/recovery/shard-marks.ts'
import type { FileDamage } from '../store/shard-damaged.ts'
import type { Counters, Log } from '../kit/surroundings.ts'
import type { PortalFrame } from '../access/portal-frame.ts'
import type { PrivateApiGuard } from '../access/private-api-guard.ts'
import type { ClusterMember, NodeReport } from '../process/node-report.ts'
import type { Owners } from '../links/ask/owner-stream.ts'
import type { ServerMinute } from '../kit/server-minute.ts'
import type { WorkerKeys } from '../access/worker-keys.ts'

export interface PrivateApiParts {
  /** The value of `--foreign-tokens`. */
  readonly takesForeignTokens?: boolean
  /** Whether the private listener itself speaks TLS. */
  readonly isTls?: boolean
  readonly portal: {
    /** The value of `--portal`. */
    readonly url: string | undefined
    readonly frame: PortalFrame
  }
  readonly clock: Clock
  readonly counters: Counters
  readonly bots: BotRegistry
  /** The budget for bodies that are read completely, and for what streams of pushes have sent only in part. */
  readonly bodies: BodyBudget<IncomingMessage>
  readonly guard: PrivateApiGuard
  readonly keys: WorkerKeys
  readonly log: Pick<Log, 'error'>
  /** The value of `--max-webhook-connections`. */
  readonly webhookConnectionsMax: number
  /** Returns the form of a token that may be stored with a webhook. Set only with `--upstream`. */
  readonly sealToken?: ((token: string) => string) | undefined
  /** The values of `--secret-token-header`. */
  readonly secretTokenHeaders: readonly string[]
  /** The number of shards of the server. */
  readonly shards: number
  /** The name of this server; undefined if it has none, because it is the only one. */
  readonly node: string | undefined
  /** The version of this server. */
  readonly version: string
  /** Whether this is the first worker of its node, which answers for the node. */
  readonly isFirstWorker: boolean
  /** The streams of events that are open. A worker that leaves stops them. */
  readonly eventStreams: Set<{ stop(): void }>
  /** The exports that are open, which end when the worker gives their shards up. */
  readonly recordStreams: Set<{ readonly shard: number; stop(): void }>
  /** Asks the log of this server. */
  readEvents(question: EventQuestion): Promise<EventPage>
  /** Returns the state of this node. */
  ownNode(): Promise<NodeReport>
  /** Where the shards are, as this node knows it. */
  readonly routes: ShardPlaces
  /** The state that /readyz shows. */
  readiness(): Promise<Readiness>
  /** The sums of the counters of all workers of this node. */
  totals(): Readonly<Record<MetricName, number>>
  /** The histograms of all workers of this node. */
  histograms(): AllHistograms
  /** What this node did in each of its last minutes, oldest first. */
  minutes(count: number): readonly ServerMinute[]
  /** Resolves with undefined if the worker ends before the check does. */
  checkShard(shard: number): Promise<CheckedShard | undefined>
  /**
   * Returns a shard of this worker.
   *
   * @throws PostboteError SHARD_BROKEN or STORE_UNAVAILABLE
   */
  shardAt(shard: number): Shard
  /** Called for a request with no key, a wrong key or one that does not allow it, a Host that is not allowed, or without a route. */
  onRefused(request: IncomingMessage): void
  /** Returns who pays for the time of a call with a key, or with a link to this bot. */
  payerOf(request: IncomingMessage, botId?: number): LoopPayer
  ownersOf(request: FastifyRequest): Owners
  /** Whether another worker sent the request. */
  isForwarded(request: FastifyRequest): boolean
  /** Whether another worker makes the request on its own, for a call that it answers, and does not forward one of a client. */
  isFromWorker(request: FastifyRequest): boolean
  /** Whether the connection was accepted on a Unix socket. */
  isUnixSocket(request: FastifyRequest): boolean
}

export interface ShardPlaces {
  /** Returns all members of the cluster; none on one machine. */
  members(): readonly ClusterMember[]
  /** Returns the shards of this node, a list for each of its workers. */
  groups(): readonly (readonly number[])[]
}

/** What /readyz shows. */
export interface Readiness {
  /** Whether every shard has a worker that responds for it, even if it refuses. */
  readonly isServed: boolean
  /** Whether the server may act on what it holds: false while none of its databases responds. */
  readonly hasLease: boolean
  /** Whether other nodes take the shards of this one, which then ends. */
  readonly isLeaving: boolean
  /** The numbers of the databases that do not respond. */
  readonly awayDatabases: readonly number[]
  /** The number of shards. */
  readonly shards: number
  /** Number of shards that accept nothing until their disk can be written again. */
  readonly poisonedShards: number
  /** Bytes of open tables that wait to be compared with their checksums. */
  readonly unverifiedBytes: number
  /** Copies of damaged files, in the data directory. */
  readonly damaged: readonly string[]
  readonly troubles: ShardTroubles
}

interface CheckedShard {
  readonly files: number
  readonly damagesFound: number
  /** The first of the damages. */
  readonly damages: readonly FileDamage[]
}
