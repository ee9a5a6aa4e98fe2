/** Routes that make, list and end links to the owner's page of a bot (protocol.md §9), and the test update of that page. */
import type { FastifyInstance } from 'fastify'
import { portalPagePath } from '../../http/target.ts'
import { portalRights } from '../../kit/rights.ts'
import { PostboteError } from '../../kit/errors.ts'
import type { ResultOf } from '../../api/operation.ts'
import type { PortalLinks } from './portal-links.ts'
import { portalOperations } from './portal-operations.ts'
import { checkRows } from '../../queue/check/check-batch.ts'
import type { StoredPortalLink } from '../../shard/records/bot-record.ts'
import { UpdateRows } from '../../shard/update-rows.ts'
import { refusal } from '../../api/update-options.ts'
import type { PrivateApiParts } from '../../private-api/private-api-parts.ts'
import { addOperations } from '../../private-api/add-operations.ts'

type LinkJson = ResultOf<typeof portalOperations.listPortalLinks>['links'][number]

export type PortalRoutesOptions = Pick<PrivateApiParts, 'bots' | 'clock' | 'portal'>

/** What the owner of a bot sees in the test update. */
const testText = 'This is a test update of Postbote.'

export function addPortalRoutes(
  app: FastifyInstance,
  links: PortalLinks,
  { bots, clock, portal }: PortalRoutesOptions,
): void {
  addOperations(app, portalOperations, {
    async createPortalLink({ params: { id }, body: { ttl, can, origin } }) {
      if (origin !== undefined && !isOrigin(origin)) {
        throw refusal('origin', 'an origin in lower case, such as https://platform.example')
      }
      const wanted = new Set(can ?? portalRights)
      const { link, secretText } = await links.make(id, {
        ttlS: ttl,
        can: portalRights.filter((right) => wanted.has(right)),
        ...(origin === undefined ? {} : { origin }),
      })
      const path = `${portalPagePath}${portal.frame.query(origin)}#${secretText}`
      return { ...linkJson(link), url: `${portal.url ?? ''}${path}` }
    },
    async listPortalLinks({ params: { id } }) {
      return { links: (await links.list(id)).map((link) => linkJson(link)) }
    },
    async revokePortalLinks({ params: { id } }) {
      return { removed: await links.revoke(id) }
    },
    async revokePortalLink({ params: { id, link_id: linkId } }) {
      return { removed: await links.revoke(id, linkId) }
    },
    async pushTestUpdate({ params: { id }, query: { test } }) {
      const update = Buffer.from(JSON.stringify(testUpdate(id, clock.nowMs())))
      const rows = UpdateRows.ofOne(update, id, {
        orderingKey: undefined,
        ttlS: undefined,
        idempotencyKey: undefined,
        isTest: test,
        isValidated: false,
      })
      checkRows(rows)
      const [outcome] = await bots.push(rows, [0]).results
      if (outcome instanceof PostboteError) throw outcome
      return typeof outcome === 'number' ? { update_id: outcome } : { filtered: true as const }
    },
  })
}

/** A default port, for example, would be another text than browsers compare. */
function isOrigin(text: string): boolean {
  return URL.canParse(text) && new URL(text).origin === text
}

/** In a chat of the bot with itself: nobody else may get what it sends there. */
function testUpdate(botId: number, nowMs: number): object {
  const message = {
    message_id: 1,
    date: Math.floor(nowMs / 1_000),
    chat: { id: botId, type: 'private', first_name: 'Postbote' },
    from: { id: botId, is_bot: false, first_name: 'Postbote' },
    text: testText,
  }
  return { message }
}

function linkJson({ id, createdAtMs, endsAtMs, can, origin }: StoredPortalLink): LinkJson {
  return {
    link_id: id,
    created_at: Math.floor(createdAtMs / 1_000),
    expires: Math.floor(endsAtMs / 1_000),
    can,
    origin: origin ?? null,
  }
}
