/**
 * The files of the owner's page. They contain no secret and need no link: the page has the secret of its link from the fragment
 * of its URL. Their headers are those of the dashboard, but for the one origin that may frame the page (portal-frame.ts).
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { portalPagePath } from '../../http/target.ts'
import type { PortalFrame } from '../../access/portal-frame.ts'
import {
  contentSecurityPolicy,
  DashboardFiles,
  fileHeaders,
} from '../../private-api/dashboard-files.ts'

const names = {
  [portalPagePath]: ['portal.html', 'text/html; charset=utf-8'],
  [`${portalPagePath}app.js`]: ['portal.js', 'text/javascript; charset=utf-8'],
  [`${portalPagePath}app.css`]: ['portal.css', 'text/css; charset=utf-8'],
} as const

/** Adds the routes of the files. */
export function addPortalPage(app: FastifyInstance, frame: Pick<PortalFrame, 'originIn'>): void {
  const files = new DashboardFiles(undefined, names)
  const send = async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> => {
    const { body, contentType } = await files.at(request.routeOptions.url ?? '')
    void reply.headers({
      ...fileHeaders,
      'content-security-policy': contentSecurityPolicy(frame.originIn(Object(request.query))),
      'cache-control': 'no-store',
    })
    return reply.type(contentType).send(body)
  }
  for (const url of Object.keys(names)) app.route({ method: ['GET', 'HEAD'], url, handler: send })
}
