/** Hooks the relays of bots into their worker. */
import type { Bot } from '../../bots/bot.ts'
import type { BotRegistry } from '../../bots/registry.ts'
import type { ModuleParts, WorkerModule } from '../../worker/module.ts'
import type { ShownFields } from '../bots/needs.ts'
import { RefusedUpdates } from './refused-updates.ts'
import { RelayJobs } from './relay-jobs.ts'
import type { RelayOrigins } from './relay-origins.ts'
import { addRelayRoutes } from './relay-routes.ts'

export async function relayModule(parts: ModuleParts): Promise<WorkerModule> {
  const { clock, dataDir: directory, isShared, registry } = parts
  const origins = await originsOf(parts)
  const refused = new RefusedUpdates(clock, directory, isShared)
  const relays = new RelayJobs({ ...parts, relays: origins, refused })
  return {
    ...relayHooks(relays, registry),
    sessionFields: () => (origins === undefined ? {} : { relays: true }),
    close: async () => origins?.close(),
  }
}

/** Returns what hooks in whether or not there are servers to take updates from. */
export function relayHooks(relays: RelayJobs, registry: BotRegistry): WorkerModule {
  return {
    addCalls: (app) => addRelayRoutes(app, relays, registry),
    served: (shard) => relays.start(shard),
    found: (shard, bots) => relays.found(shard, bots),
    left: (shard) => void relays.forget(shard),
    typesChanged: (queue) => relays.typesChanged(queue),
    async removing(bot) {
      await relays.endOver(bot)
      return []
    },
    stays: ({ botId, main, record }) => relays.found(main.shard, [{ queue: botId, record }]),
    // Updates that a relay could not store have no ordering key, so all those of the bot go.
    erasing: (bot) => relays.forgetRefused(bot),
    troubleOf(shard, queue) {
      const reason = relays.pauseOf(shard, queue)
      return reason === undefined ? undefined : `the relay is paused: ${reason}`
    },
    botFields(bot: Bot): ShownFields {
      const relay = relays.report(bot)
      return relay === undefined ? {} : { relay }
    },
    stop: () => relays.close(),
  }
}

/** What relays need of other servers is imported only if it is used, because loading it takes a while. */
async function originsOf({
  config: { relayFrom },
  ...parts
}: ModuleParts): Promise<RelayOrigins | undefined> {
  if (relayFrom.length === 0) return undefined
  const { RelayOrigins: Origins } = await import('./relay-origins.ts')
  return new Origins(parts, relayFrom, parts.adminKey, parts.network)
}
