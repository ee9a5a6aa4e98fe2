/**
 * A feature that works in a worker for as long as that has shards. To add one: its folder gets a module.ts, which exports a
 * `MakeModule`, and src/modules/worker-modules.ts a line.
 */
import type { BotHooks } from '../bots/hooks.ts'
import type { BotRegistry } from '../bots/registry.ts'
import type { Config } from '../config/config.ts'
import type { AttemptLogs } from '../delivery/attempts/attempt-logs.ts'
import type { WebhookNetwork } from '../delivery/endpoint/verify.ts'
import type { Modules } from '../kit/modules.ts'
import type { ReportEvent } from '../kit/operator-event.ts'
import type { Surroundings } from '../kit/surroundings.ts'
import type { ApiHooks } from '../private-api/hooks.ts'
import type { ShardHooks } from '../shard/hooks.ts'

/** What it hooks into. */
export interface WorkerModule extends ShardHooks, BotHooks, ApiHooks {
  /** From now on the module does nothing by itself, because the worker gives its shards up. */
  stop?(): void
  /** The worker ends; its shards are still open. */
  close?(): Promise<void>
}

/** What a module may use of its worker. */
export interface ModuleParts extends Surroundings {
  readonly config: Config
  readonly adminKey: string
  readonly dataDir: string
  /** Whether another node may have a shard next. */
  readonly isShared: boolean
  readonly registry: BotRegistry
  /** What has become of the deliveries of bots, loaded or not. */
  readonly attempts: AttemptLogs
  /** All modules, also those that are made after this one: empty until all are made. */
  readonly modules: Modules<WorkerModule>
  readonly report: ReportEvent
  /** The network of webhooks, with their rules of addresses. */
  readonly network: WebhookNetwork
}

export type MakeModule = (parts: ModuleParts) => WorkerModule | Promise<WorkerModule>
