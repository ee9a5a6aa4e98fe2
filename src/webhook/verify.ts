/**
 * What setWebhook does before it changes anything: the host resolves, every one of its addresses is allowed,
 * and one of them can be connected to, TLS included. All within one deadline; an abort (another setWebhook)
 * ends it at once and leaves no connection behind.
 */

import { sleep, type Clock } from '../clock.ts'
import { connectTarget, type Connector } from './connector.ts'
import { badWebhook, type Endpoint } from './endpoint.ts'
import { describeFailure, noNameServerAnswer, WebhookFailure } from './failure.ts'
import { isPlainAddress } from '../net/ip-address.ts'
import { reservedAddress, resolveHost, type ResolvePorts } from './resolve.ts'

/** What a webhook needs of the network. */
export interface WebhookNetwork extends ResolvePorts {
  readonly connect: Connector
}

export interface Verification {
  readonly endpoint: Endpoint
  readonly ipAddress?: string | undefined
  /** PEM, as `readCertificates` returned it. */
  readonly certificate?: string | undefined
  readonly network: WebhookNetwork
  readonly clock: Clock
  readonly timeoutMs: number
  readonly signal?: AbortSignal | undefined
}

export interface Verified {
  /** The one that was connected to. */
  readonly address: string
  /** All that may be connected to: the one that was first, then the others in the order of the look-up. */
  readonly addresses: readonly string[]
}

/**
 * The addresses that deliveries are to use. Rejects with BAD_WEBHOOK, or with the signal's reason when that was
 * aborted.
 */
export async function verifyEndpoint(verification: Verification): Promise<Verified> {
  const { clock, ipAddress, signal } = verification
  if (ipAddress !== undefined && !isPlainAddress(ipAddress)) {
    throw badWebhook('Invalid IP address specified')
  }
  signal?.throwIfAborted()
  const own = new AbortController()
  const abort = (): void => own.abort()
  signal?.addEventListener('abort', abort, { once: true })
  try {
    let isResolved = false
    const deadline = sleep(clock, verification.timeoutMs, own.signal).then(() => {
      // The look-up goes on for as long as a delivery would wait for it.
      throw new WebhookFailure(
        isResolved ? 'Connection timed out' : noNameServerAnswer,
        'timed_out',
      )
    })
    const work = connectOnce(verification, own.signal, () => {
      isResolved = true
    })
    // Whichever comes second has nobody waiting for it any more.
    deadline.catch(() => undefined)
    work.catch(() => undefined)
    return await Promise.race([work, deadline])
  } catch (error) {
    signal?.throwIfAborted()
    throw badWebhook(describeFailure(error), error)
  } finally {
    own.abort()
    signal?.removeEventListener('abort', abort)
  }
}

async function connectOnce(
  verification: Verification,
  signal: AbortSignal,
  onResolved: () => void,
): Promise<Verified> {
  const { endpoint, network, clock } = verification
  const endMs = clock.monotonicMs() + verification.timeoutMs
  const { allowed, blocked } = await resolveHost(
    {
      host: endpoint.host,
      hostIsAddress: endpoint.hostIsAddress,
      pinnedAddress: verification.ipAddress,
    },
    network,
  )
  onResolved()
  if (blocked[0] !== undefined) throw reservedAddress(blocked[0])
  const target = connectTarget(endpoint, verification.certificate)
  let failure: unknown
  for (const [index, address] of allowed.entries()) {
    if (signal.aborted) break
    try {
      // An address that answers nothing must leave time for those after it.
      const timeoutMs = (endMs - clock.monotonicMs()) / (allowed.length - index)
      const socket = await network.connect({ target, address, timeoutMs, signal })
      // What is written goes out first, else the endpoint sees a handshake that broke off.
      socket.destroySoon()
      return { address, addresses: [address, ...allowed.filter((other) => other !== address)] }
    } catch (error) {
      // The first failure says most: the others are often a family this machine has no route for.
      failure ??= error
    }
  }
  throw failure ?? new WebhookFailure('Connection timed out', 'timed_out')
}
