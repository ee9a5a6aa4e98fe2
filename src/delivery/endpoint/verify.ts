/**
 * The checks of setWebhook before it changes anything: the host resolves, all its addresses are allowed, and one of them
 * can be connected to, including TLS. All of this happens within one deadline. An abort (another setWebhook) ends it
 * immediately and leaves no connection open.
 */
import type { Socket } from 'node:net'
import { sleep, type Clock } from '../../kit/clock.ts'
import { connectTarget, type Connector, type ConnectRequest } from './connector.ts'
import { badWebhook, type Endpoint } from './endpoint.ts'
import { failureOf, noNameServerAnswer, WebhookFailure } from '../attempts/failure.ts'
import { isPlainAddress } from '../../http/ip-address.ts'
import { reservedAddress, resolveHost, type ResolvePorts } from './resolve.ts'

/** What a webhook needs from the network. */
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
  /** The address that was connected to. */
  readonly address: string
  /** All addresses that may be connected to: first `address`, then the others in the order of the look-up. */
  readonly addresses: readonly string[]
}

/**
 * Returns the addresses for deliveries. Rejects with BAD_WEBHOOK, or with the signal's reason if the signal was aborted.
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
    const work = connectOnce(verification, own.signal, () => {
      isResolved = true
    })
    const deadline = sleep(clock, verification.timeoutMs, own.signal).then(() => {
      // Connections end at the same time by themselves, and say what was silent.
      if (isResolved) return work
      // The look-up itself continues for as long as a delivery would wait for it.
      throw new WebhookFailure(noNameServerAnswer, 'timed_out')
    })
    // Nothing awaits the promise that settles second.
    deadline.catch(() => undefined)
    work.catch(() => undefined)
    return await Promise.race([work, deadline])
  } catch (error) {
    signal?.throwIfAborted()
    throw badWebhook(failureOf(error).message, error)
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
    { ...endpoint, pinnedAddress: verification.ipAddress },
    network,
  )
  onResolved()
  if (blocked[0] !== undefined) throw reservedAddress(blocked[0])
  const target = connectTarget(endpoint, verification.certificate)
  const { socket, address } = await connectToFirst({
    addresses: allowed,
    endMs,
    clock,
    signal,
    connect: (request) => network.connect({ ...request, target, signal }),
  })
  // Pending writes go out first; otherwise the endpoint would see a broken handshake.
  socket.destroySoon()
  return { address, addresses: [address, ...allowed.filter((other) => other !== address)] }
}

interface Connecting {
  readonly addresses: readonly string[]
  /** Monotonic. */
  readonly endMs: number
  readonly clock: Clock
  readonly signal: AbortSignal
  connect(request: Pick<ConnectRequest, 'address' | 'timeoutMs'>): Promise<Socket>
}

/** Connects to the first of these addresses that lets this server do so. Rejects with the failure of the first one. */
export async function connectToFirst(
  connecting: Connecting,
): Promise<{ readonly socket: Socket; readonly address: string }> {
  const { addresses, endMs, clock, signal } = connecting
  let failure: unknown
  for (const [index, address] of addresses.entries()) {
    if (signal.aborted) break
    try {
      // An address that does not respond must leave time for those after it.
      const timeoutMs = (endMs - clock.monotonicMs()) / (addresses.length - index)
      return { socket: await connecting.connect({ address, timeoutMs }), address }
    } catch (error) {
      // The first failure is the most useful one: later addresses often belong to a family for which this machine has no
      // route.
      failure ??= error
    }
  }
  throw failure ?? new WebhookFailure('Connection timed out', 'timed_out')
}
