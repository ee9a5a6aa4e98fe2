/** Hooks the links of the owner's page into their worker. */
import { PortalFrame } from '../../access/portal-frame.ts'
import type { ModuleParts, WorkerModule } from '../../worker/module.ts'
import { PortalLinks } from './portal-links.ts'
import { addPortalRoutes, type PortalRoutesOptions } from './portal-routes.ts'

export function portalModule({ config, adminKey, clock, registry }: ModuleParts): WorkerModule {
  const links = new PortalLinks(clock, registry.bots, (botId, change) =>
    registry.changeRecord(botId, change),
  )
  const portal = { url: config.portal, frame: new PortalFrame(adminKey) }
  return portalHooks(links, { bots: registry, clock, portal })
}

export function portalHooks(links: PortalLinks, options: PortalRoutesOptions): WorkerModule {
  return {
    addCalls: (app) => addPortalRoutes(app, links, options),
    linkOf: (secret) => links.authorize(secret),
    watchLink: (link, onEnd) => links.watch(link.botId, link.id, onEnd),
    removalBegins: ({ botId }) => links.endOver(botId),
  }
}
