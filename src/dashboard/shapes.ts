/** The responses of the private API that the page uses; docs/use/api.md describes them. Optional: an older server lacks it. */

/** A word for the state of a queue. */
export type HealthShape = 'healthy' | 'degraded' | 'failing' | 'paused' | 'unpolled'

/** GET /v1/summary */
export interface SummaryShape {
  readonly bots: number
  readonly health: Readonly<Record<string, number>>
  readonly paused: number
  readonly pending: number
  readonly pending_bytes: number
  readonly oldest_age: number | null
  readonly oldest_bot_id: number | null
  readonly oldest_test: boolean | null
  readonly dead_letters: number
  readonly updates: Readonly<Record<'pushed' | 'confirmed' | 'delivered' | 'refused', number>>
  readonly workers: number
  readonly shards: number
  readonly missing_shards?: readonly number[]
}

/** A worker of GET /v1/nodes. */
export interface WorkerShape {
  readonly worker: number
  readonly state: string
  readonly pid: number | null
  readonly restarts: number
  readonly uptime: number | null
  readonly event_loop_delay_p99_ms: number
  readonly event_loop_delay_max_ms: number
}

/** A shard of GET /v1/nodes. */
export interface NodeShardShape {
  readonly shard: number
  readonly worker: number | null
  readonly state: string
}

/** A node of GET /v1/nodes. */
export interface NodeShape {
  readonly name: string
  readonly state: string
  readonly version: string | null
  readonly uptime: number | null
  readonly heartbeat_age_ms: number | null
  /** Absent from a node of an earlier version. */
  readonly clock_skew_ms?: number | null
  readonly workers: readonly WorkerShape[]
  readonly shards: readonly NodeShardShape[]
}

/** GET /v1/nodes */
export interface NodeListShape {
  readonly nodes: readonly NodeShape[]
}

/** A bot of GET /v1/bots. */
export interface ListedBotShape {
  readonly bot_id: number
  readonly first_name: string
  readonly username: string
  readonly mode?: 'polling' | 'webhook' | null
  readonly pending?: number | null
  readonly oldest_age?: number | null
  readonly paused?: boolean | null
  readonly health?: HealthShape | null
}

/** GET /v1/bots */
export interface BotListShape {
  readonly bots: readonly ListedBotShape[]
  readonly missing_shards?: readonly number[]
}

/** A queue of GET /v1/bots/:id. */
export interface QueueShape {
  readonly mode: 'polling' | 'webhook'
  readonly pending: number
  readonly pending_bytes: number
  readonly oldest_age: number | null
  readonly dead_letters: number
  readonly waiting_poll: boolean
  readonly webhook_host: string | null
  readonly max_connections: number | null
  readonly paused: boolean
  readonly health: HealthShape | null
  readonly health_reason: string | null
  readonly last_error_message: string | null
  readonly parked_keys: number
  readonly next_attempt: number | null
}

/** GET /v1/bots/:id */
export interface BotShape extends QueueShape {
  readonly bot_id: number
  readonly first_name: string
  readonly username: string
  readonly test: QueueShape
}

/** An entry of GET /v1/bots/:id/attempts. */
export interface AttemptShape {
  readonly time: number
  readonly update_id: number | null
  readonly status: number | null
  readonly duration_ms: number
  readonly error: string | null
  readonly next_retry: number | null
}

/** GET /v1/bots/:id/history */
export interface HistoryShape {
  readonly from: number
  readonly outcomes: Readonly<Record<string, readonly number[]>>
  readonly mean_ms: readonly (number | null)[]
  readonly max_ms: readonly (number | null)[]
}

/** An entry of GET /v1/bots/:id/dead-letters. */
export interface DeadLetterShape {
  readonly update_id: number
  readonly type: string
  readonly reason: string
  readonly time: number
  readonly attempts: number
  readonly last_error: string | null
  readonly bytes: number
}

/** A damaged file of GET /readyz. */
export interface DamageShape {
  readonly shard: number
  readonly file: string
  readonly reason: string
}

/** GET /readyz */
export interface ReadinessShape {
  readonly status: string
  readonly away_databases?: readonly number[]
  readonly poisoned_shards?: number
  readonly damaged?: readonly string[]
  readonly broken_shards?: readonly DamageShape[]
  readonly damaged_files?: readonly DamageShape[]
  readonly checking_shards?: readonly number[]
}

/** GET /v1/session */
export interface RightsShape {
  /** Null for the admin key. */
  readonly name: string | null
  readonly scopes: readonly string[]
  /** Null: all bots. */
  readonly bots: readonly number[] | null
}

/** A key of GET /v1/keys. */
export interface KeyShape {
  readonly key_id: string
  readonly name: string
  readonly scopes: readonly string[]
  readonly bots: readonly number[] | null
  readonly updates_per_second: number | null
  readonly requests_per_second: number | null
  readonly expires: number | null
  readonly last_used: number | null
}

/** What the response to a change of a key says about the workers that could not be told. */
export interface KeyChangeShape {
  readonly unreached_workers?: number
}

/** POST /v1/keys */
export interface IssuedKeyShape extends KeyShape, KeyChangeShape {
  readonly key: string
}
