/**
 * The way to webhooks: the proxy, if `--proxy` is given, and one webhook, if its URL is given. The webhook is examined as
 * setWebhook does it: look-up, judgment of its addresses, connection and TLS. No request is sent, so its bot notices
 * nothing.
 */
import { readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { resolve as absolute } from 'node:path'
import type { Clock } from '../../kit/clock.ts'
import type { Config } from '../../config/config.ts'
import { compileBlocklist, isBlocked } from '../../http/blocklist.ts'
import { messageOf } from '../../kit/errors.ts'
import { statusOf } from '../serve/command-socket.ts'
import { bad, type Finding, good } from '../../kit/finding.ts'
import { createConnector } from '../../delivery/endpoint/connector.ts'
import type { Proxy } from '../../http/server-origin.ts'
import { type Endpoint, parseEndpoint } from '../../delivery/endpoint/endpoint.ts'
import { proxyFailureOf } from '../../delivery/attempts/failure.ts'
import {
  createHostLookup,
  readHostsFile,
  systemLookup,
} from '../../delivery/endpoint/host-lookup.ts'
import { trustRoots } from '../../delivery/endpoint/trust-roots.ts'
import { verifyEndpoint, type WebhookNetwork } from '../../delivery/endpoint/verify.ts'
import { answerMsMax } from '../limits.ts'

export async function examineNetwork(
  config: Config,
  { clock, webhookUrl }: { readonly clock: Clock; readonly webhookUrl: string | undefined },
): Promise<readonly Finding[]> {
  return [
    ...(config.proxy === undefined ? [] : [await proxyFinding(config.proxy)]),
    ...(webhookUrl === undefined ? [] : [await webhookFinding(config, clock, webhookUrl)]),
  ]
}

/** The credentials of the proxy are tried only on the way to a webhook. */
function proxyFinding({ host, port }: Proxy): Promise<Finding> {
  return new Promise((resolve) => {
    const socket = connect({ host, port, timeout: answerMsMax })
    const end = (finding: Finding): void => {
      socket.destroy()
      resolve(finding)
    }
    const fail = (error: unknown): void =>
      end(bad(`${proxyFailureOf(error).message} at ${host}:${port}: check --proxy and the proxy`))
    socket.once('connect', () => end(good(`the proxy at ${host}:${port} accepts connections`)))
    socket.once('timeout', () => fail(Object.assign(new Error(), { code: 'ETIMEDOUT' })))
    socket.once('error', fail)
  })
}

async function webhookFinding(given: Config, clock: Clock, url: string): Promise<Finding> {
  // Bots call setWebhook at the server that runs, and not at one with the options of this command.
  const running = await statusOf(absolute(given.dir), clock)
  const config = { ...given, local: given.local || running?.local === true }
  let endpoint: Endpoint
  try {
    endpoint = parseEndpoint(url, { local: config.local })
  } catch (error) {
    return bad(`--webhook-url: ${messageOf(error)}`)
  }
  // The path and the credentials of the URL may be secrets.
  const shown = `${endpoint.host}:${endpoint.port}`
  const startMs = clock.monotonicMs()
  try {
    const { address } = await verifyEndpoint({
      endpoint,
      network: networkOf(config, clock),
      clock,
      timeoutMs: config.webhookVerifyTimeoutMs,
    })
    const tookMs = Math.round(clock.monotonicMs() - startMs)
    const way = config.proxy === undefined ? '' : ' through the proxy'
    return good(`${shown} accepts connections at ${address}${way}, after ${tookMs} ms`)
  } catch (error) {
    const reason = messageOf(error)
    return bad(`${shown}: ${reason}; ${webhookAdvice(reason)}`)
  }
}

/** Says what to change, by the words of `failure.ts`. */
function webhookAdvice(reason: string): string {
  if (reason.includes('Failed to resolve host')) {
    return 'check the name, and the name servers in /etc/resolv.conf'
  }
  if (reason.includes('is reserved')) {
    return 'if webhooks may have this address, give --allow-cidr or --local'
  }
  if (reason.includes('Proxy:')) return 'check --proxy, its password, and what the proxy allows'
  if (reason.includes('TLS:')) {
    return "check the webhook's certificate, and the authorities of this machine (SSL_CERT_FILE)"
  }
  if (reason.includes('Connection refused')) {
    return 'nobody listens there: start the webhook, or check its port'
  }
  return 'check the firewall of this machine, its routes, and the webhook'
}

function networkOf(config: Config, clock: Clock): WebhookNetwork {
  const ranges = compileBlocklist({
    local: config.local,
    block: config.blockCidrs,
    allow: config.allowCidrs,
  })
  return {
    lookup: createHostLookup(
      clock,
      readHostsFile,
      config.local || config.allowCidrs.length > 0 ? systemLookup : undefined,
    ),
    judge: async (addresses) => addresses.map((address) => !isBlocked(ranges, address)),
    connect: createConnector(clock, config.proxy, () =>
      trustRoots({ env: process.env, readFile: (path) => readFileSync(path, 'utf8') }),
    ),
  }
}
