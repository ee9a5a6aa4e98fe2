/**
 * nginx or haproxy in front of two or three nodes, as docs/run/cluster-nginx.conf and docs/run/cluster-haproxy.cfg have it.
 * Besides the documented listeners with TLS, each has listeners without it, for clients that know no certificates.
 */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { Haproxy } from './haproxy.ts'
import { Nginx } from './nginx.ts'
import { replaceAll, type TlsProxy } from './tls-proxy.ts'
import type { EndingTest, Server } from '../server/server.ts'
import { freePort } from '../kit/port.ts'

export interface Balancer {
  /** The documented listeners. */
  readonly tls: TlsProxy
  /** `host:port` of the listeners without TLS. */
  readonly bot: string
  readonly private: string
  /** Returns everything that it has logged. */
  log(): string
}

export interface NginxBalancerOptions {
  /** For tests of clients: draws the node of each request, and believes the address that a client sends as its own. */
  readonly isRandom?: boolean
}

type Nodes = readonly Pick<Server, 'botUrl' | 'privateUrl'>[]

const documented = new URL('../../../../docs/run/cluster-nginx.conf', import.meta.url)
const thirdNode = /^ +server .*10\.0\.0\.3:.*\n/gm
const upstreamBlock = /^(?:#.*\n)*upstream (\w+) \{[^}]*\}\n/gm

export async function startNginxBalancer(
  t: EndingTest,
  nodes: Nodes,
  { isRandom = false }: NginxBalancerOptions = {},
): Promise<Balancer> {
  const [bot, own] = [await freeAddress(), await freeAddress()]
  const upstreams = withAddresses(readFileSync(documented, 'utf8'), nodes)
  const edit = (site: string): string => {
    assert.deepEqual(upstreamNames(upstreams), upstreamNames(site))
    const drawn = upstreams.replaceAll(/^upstream \w+ \{\n/gm, (head) => `${head}    random;\n`)
    const forged = isRandom ? { 'X-Real-IP $remote_addr': 'X-Real-IP $http_x_real_ip' } : {}
    return replaceAll((isRandom ? drawn : upstreams) + site.replaceAll(upstreamBlock, ''), {
      ...forged,
      'listen 443 ssl http2;': `listen 443 ssl http2; listen ${bot};`,
      'listen 8443 ssl http2;': `listen 8443 ssl http2; listen ${own};`,
    })
  }
  const nginx = await Nginx.start(t, { edit })
  return { tls: nginx, bot, private: own, log: () => nginx.log() }
}

export async function startHaproxyBalancer(t: EndingTest, nodes: Nodes): Promise<Balancer> {
  const [bot, own] = [await freeAddress(), await freeAddress()]
  const haproxy = await Haproxy.start(t, (text) =>
    replaceAll(withAddresses(text, nodes), {
      '    bind :443 ': `    bind ${bot}\n    bind :443 `,
      '    bind :8443 ': `    bind ${own}\n    bind :8443 `,
    }),
  )
  return { tls: haproxy, bot, private: own, log: () => haproxy.log() }
}

function withAddresses(documentedText: string, nodes: Nodes): string {
  assert([2, 3].includes(nodes.length), 'the documented configurations have three nodes')
  // Each of them has lines of its own, so the third one can be left out.
  const text = nodes.length === 3 ? documentedText : documentedText.replaceAll(thirdNode, '')
  const addresses = nodes.flatMap(({ botUrl, privateUrl }, at) => [
    [`10.0.0.${at + 1}:8081`, new URL(botUrl).host],
    [`10.0.0.${at + 1}:8082`, new URL(privateUrl).host],
  ])
  return replaceAll(text, Object.fromEntries(addresses))
}

function upstreamNames(text: string): readonly string[] {
  return [...text.matchAll(upstreamBlock)].map(([, name = '']) => name)
}

async function freeAddress(): Promise<string> {
  return `127.0.0.1:${await freePort()}`
}
