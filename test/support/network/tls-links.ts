/** Two nodes of a cluster on the loopback: a listener for links, whose owner responds as the test says, and a caller. */
import type { LinkSecurity } from '../../../src/process/node-links.ts'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { TestContext } from 'node:test'
import type { LinkAddress } from '../../../src/links/link/connect-link.ts'
import { linkSecurityFrom } from '../../../src/links/link/link-security.ts'
import { LinkSet } from '../../../src/links/link/link-set.ts'
import { type ServedLink, serveLink } from '../../../src/links/link/serve-link.ts'
import { TlsLinkListener } from '../../../src/links/link/tls-link-listener.ts'
import { callsOf, LinkClock } from './link-calls.ts'

export const host = '127.0.0.1'

/** Returns the security of a cluster with this key. */
export function keySecurity(content: string): LinkSecurity {
  return linkSecurityFrom('cluster.key', () => Buffer.from(content))
}

const skip = (): void => undefined

type Listener = (request: IncomingMessage, response: ServerResponse) => unknown

export interface ListeningNode {
  readonly listener: TlsLinkListener
  /** The warnings, as JSON. */
  readonly warnings: string[]
  readonly accepted: Socket[]
  readonly served: ServedLink[]
}

export interface NodeOptions {
  readonly security: LinkSecurity
  readonly clock: LinkClock
  readonly host?: string
  readonly port?: number
  readonly answer?: Listener | undefined
}

/** Makes a listener that does not listen yet. */
export function newNode(t: TestContext, options: NodeOptions): ListeningNode {
  const { clock, answer = (_request, response) => response.end('ok') } = options
  const warnings: string[] = []
  const accepted: Socket[] = []
  const served: ServedLink[] = []
  const warn = (fields: object, text: string): void =>
    void warnings.push(JSON.stringify({ ...fields, text }))
  const accept = (socket: Socket): void => {
    accepted.push(socket)
    const link = serveLink(socket, {
      clock,
      serve: (_kind, request, response) => answer(request, response),
      streamClosed: skip,
    })
    served.push(link)
  }
  const log = { debug: skip, info: skip, warn, error: skip }
  const listener = new TlsLinkListener({ host, port: 0, ...options }, { clock, log }, accept)
  t.after(() => listener.close())
  return { listener, warnings, accepted, served }
}

/** Returns the links of a node to one other node, its place 0. */
export function linksTo(
  t: TestContext,
  options: { readonly clock: LinkClock; readonly security: LinkSecurity; readonly port: number },
) {
  const { clock, security, port } = options
  const addressOf = (): LinkAddress => ({ host, port })
  const links = new LinkSet(clock, addressOf, security)
  t.after(() => links.close())
  return { links, ...callsOf(links, 0) }
}

/** Returns a listening node and the links of another node to it. */
export async function twoNodes(
  t: TestContext,
  options: {
    readonly owner: LinkSecurity
    readonly caller?: LinkSecurity
    readonly answer?: Listener
  },
) {
  const { owner, caller = owner, answer } = options
  const clock = new LinkClock()
  const node = newNode(t, { security: owner, clock, answer })
  await node.listener.listen()
  const port = node.listener.port ?? 0
  return { clock, port, ...node, ...linksTo(t, { clock, security: caller, port }) }
}
