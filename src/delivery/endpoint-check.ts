/**
 * "Check my endpoint": goes the way of a delivery once, and tells how each step has ended and how long it took.
 *
 *     name --> addresses --> connection --> tls --> post
 *
 * It uses the network, the rules and the times of deliveries, but shares nothing with them: neither a connection nor a TLS session,
 * a lane or a pace. Addresses that deliveries may not use are shown and never connected to. The update that it posts is empty and
 * has the id 0, which no update of a queue has, so it says nothing to the bot and counts nowhere.
 *
 * All texts that come from the other side pass the door of texts (kit/text/shown-text.ts).
 */
import assert from 'node:assert/strict'
import { isIPv6, type Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import { type Clock, namedMs, sleep, utcText } from '../kit/clock.ts'
import { endlessLease } from '../kit/lease.ts'
import { shownText } from '../kit/text/shown-text.ts'
import { checkAdvice } from './check-advice.ts'
import { type CheckStepName, type checkStates, checkSteps } from '../kit/states.ts'
import { classifyResponse, describeStatus, statusWords } from './attempts/classify-response.ts'
import { Connection } from './endpoint/connection.ts'
import { connectTarget } from './endpoint/connector.ts'
import type { Endpoint } from './endpoint/endpoint.ts'
import { failureOf, noNameServerAnswer, noResponse, WebhookFailure } from './attempts/failure.ts'
import type { KnownAddresses } from './endpoint/known-addresses.ts'
import { Lane } from './lanes/lane.ts'
import { webhookAddressesMax, webhookConnectTimeoutMs, webhookResponseTimeoutMs } from './limits.ts'
import { requestHeaders, type ShownHeader } from './endpoint/request-headers.ts'
import {
  findAddresses,
  judgeAddresses,
  reservedAddress,
  webhookResolvedForMs,
} from './endpoint/resolve.ts'
import { shownHeadersIn } from './attempts/response-headers.ts'
import type { ResponseTextOptions } from './attempts/response-text.ts'
import { SignatureHeaders, type SignatureSource } from './signature.ts'
import { connectToFirst, type WebhookNetwork } from './endpoint/verify.ts'
import { PostboteError } from '../kit/errors.ts'

export interface CheckStep {
  readonly step: CheckStepName
  readonly state: (typeof checkStates)[number]
  /** Undefined for a step that was skipped. */
  readonly durationMs: number | undefined
  /** How it has ended, or why it was skipped. */
  readonly text: string
}

/** An address of the name. */
export interface CheckedAddress {
  readonly address: string
  /** Why it may not be connected to; undefined if it may. */
  readonly refusal: string | undefined
}

/** What the endpoint has shown in the handshake. */
export interface CheckedTls {
  readonly version: string
  readonly subject: string
  readonly issuer: string
  /** Wall time; undefined for a date that cannot be read. */
  readonly validUntilMs: number | undefined
}

export interface EndpointCheck {
  /** All steps, in their order. */
  readonly steps: readonly CheckStep[]
  readonly addresses: readonly CheckedAddress[]
  /** Undefined if the endpoint has shown no certificate. */
  readonly tls: CheckedTls | undefined
  /** 0 without a response. */
  readonly status: number
  /** Of a response that is no success, if deliveries to this address keep them, too. */
  readonly responseHeaders: readonly ShownHeader[] | undefined
  readonly responseBody: string | undefined
  /** One sentence that says what to do. */
  readonly advice: string
}

export interface EndpointCheckOptions {
  readonly endpoint: Endpoint
  readonly ipAddress?: string | undefined
  /** PEM, as `readCertificates` returned it. */
  readonly certificate?: string | undefined
  readonly secretToken?: string | undefined
  readonly headers?: Readonly<Record<string, string>> | undefined
  readonly secretHeaderNames: readonly string[]
  readonly userAgent?: string | undefined
  readonly signing: SignatureSource
  /** The addresses that deliveries use. */
  readonly known: Pick<KnownAddresses, 'addresses' | 'foundMs'>
  readonly network: WebhookNetwork
  readonly clock: Clock
  /** Ends the check, which rejects with its reason. */
  readonly signal: AbortSignal
  /** Says in words why an address may not be connected to. */
  refusalOf(address: string): string
  /** Which responses that are no success are shown, by the address. */
  responseTextOf?: ((address: string) => ResponseTextOptions | undefined) | undefined
}

/** A name and its addresses are waited for as long as for a connection. A look-up ends before that: name servers have 8 s. */
const checkResolveTimeoutMs = webhookConnectTimeoutMs
/**
 * A worker checks this many endpoints at a time, each of another queue. Chosen: a person starts one after the other. A check may
 * take a minute and a half, and costs a worker as much as a delivery with a full handshake.
 */
export const endpointChecksMax = 8
/** Most checks end in less than this. */
const endpointCheckRetryAfterS = 5
/** The empty update. */
const emptyUpdate = Buffer.from('{"update_id":0}')

/** Checks an endpoint. Rejects only with the reason of its signal. */
export async function checkEndpoint(options: EndpointCheckOptions): Promise<EndpointCheck> {
  const check = new Check(options)
  await check.run()
  return check.result()
}

/** A connection that was tried. */
interface Try {
  readonly address: string
  readonly startedMs: number
  /** When there was a transport. */
  transportMs?: number
}

interface Response {
  readonly status: number
  readonly deliveryOrder: string | undefined
  readonly headers: string | undefined
  readonly body: string | undefined
}

interface Done<Value> {
  readonly value: Value
  readonly text: string
}

class Check {
  readonly #options: EndpointCheckOptions
  readonly #ended = new Map<CheckStepName, Omit<CheckStep, 'step'>>()
  #failed: { readonly step: CheckStepName; readonly failure: WebhookFailure } | undefined
  #addresses: readonly CheckedAddress[] = []
  #tls: CheckedTls | undefined
  #response: Response | undefined

  constructor(options: EndpointCheckOptions) {
    this.#options = options
  }

  async run(): Promise<void> {
    const { signal } = this.#options
    signal.throwIfAborted()
    try {
      const found = await this.#step('name', () => this.#find())
      const allowed = await this.#step('addresses', () => this.#judge(found))
      const { socket, address } = await this.#connect(allowed)
      await this.#step('post', () => this.#post(socket, address))
    } catch (error) {
      signal.throwIfAborted()
      // A step that has failed is in the result.
      if (error !== this.#failed?.failure) throw error
    }
  }

  result(): EndpointCheck {
    const { endpoint } = this.#options
    const skipped = { state: 'skipped', durationMs: undefined, text: 'not reached' } as const
    const status = this.#response?.status ?? 0
    const headers = this.#response?.headers
    return {
      steps: checkSteps.map((step) => ({ step, ...(this.#ended.get(step) ?? skipped) })),
      addresses: this.#addresses,
      tls: this.#tls,
      status,
      responseHeaders: headers === undefined ? undefined : shownHeadersIn(headers),
      responseBody: this.#response?.body,
      advice: checkAdvice({ endpoint, failed: this.#failed, status }),
    }
  }

  async #step<Value>(step: CheckStepName, work: () => Promise<Done<Value>>): Promise<Value> {
    const { clock } = this.#options
    const startedMs = clock.monotonicMs()
    try {
      const { value, text } = await work()
      const durationMs = clock.monotonicMs() - startedMs
      // A step that had nothing to do has said so.
      if (!this.#ended.has(step)) this.#ended.set(step, { state: 'ok', durationMs, text })
      return value
    } catch (error) {
      throw this.#fail(step, { error, durationMs: clock.monotonicMs() - startedMs })
    }
  }

  #fail(
    step: CheckStepName,
    { error, durationMs, text }: { error: unknown; durationMs: number; text?: string },
  ): WebhookFailure {
    const failure = failureOf(error)
    this.#failed = { step, failure }
    this.#ended.set(step, { state: 'failed', durationMs, text: text ?? failure.message })
    return failure
  }

  #skip(step: CheckStepName, text: string): void {
    this.#ended.set(step, { state: 'skipped', durationMs: undefined, text })
  }

  async #find(): Promise<Done<readonly string[]>> {
    const { endpoint, ipAddress, network } = this.#options
    if (ipAddress !== undefined) this.#skip('name', 'setWebhook had an ip_address in its place')
    else if (endpoint.hostIsAddress) this.#skip('name', 'the URL has an address in its place')
    const target = { ...endpoint, pinnedAddress: ipAddress }
    const late = new WebhookFailure(noNameServerAnswer, 'timed_out')
    const value = await this.#within(findAddresses(target, network.lookup), {
      timeoutMs: checkResolveTimeoutMs,
      late,
    })
    return { value, text: `${endpoint.host} has ${countOf(value.length, 'address')}` }
  }

  async #judge(found: readonly string[]): Promise<Done<readonly string[]>> {
    const { network } = this.#options
    const { allowed, blocked } = await this.#within(judgeAddresses(found, network.judge), {
      timeoutMs: checkResolveTimeoutMs,
      late: new WebhookFailure('The addresses were not judged in time', 'timed_out'),
    })
    const refused = blocked
      .slice(0, webhookAddressesMax)
      .map((address) => ({ address, refusal: this.#options.refusalOf(address) }))
    this.#addresses = [...allowed.map((address) => ({ address, refusal: undefined })), ...refused]
    const [first] = refused
    if (allowed.length === 0) throw reservedAddress(first?.address ?? this.#options.endpoint.host)
    const text = [
      `${countOf(allowed.length, 'address')} allowed`,
      ...(first === undefined
        ? []
        : [`${blocked.length} refused and never used, such as ${first.address}: ${first.refusal}`]),
      ...this.#usedStill(allowed),
    ]
    return { value: allowed, text: text.join('; ') }
  }

  /** Deliveries look a name up again after some time only. */
  #usedStill(allowed: readonly string[]): readonly string[] {
    const { known, clock } = this.#options
    const [first] = known.addresses
    const isOld = clock.monotonicMs() - known.foundMs > webhookResolvedForMs
    if (first === undefined || isOld || known.addresses.some((each) => allowed.includes(each))) {
      return []
    }
    return [`deliveries still use ${first}, which was found before, for half an hour at most`]
  }

  /** The steps `connection` and `tls`. */
  async #connect(
    addresses: readonly string[],
  ): Promise<{ readonly socket: Socket; readonly address: string }> {
    const { certificate, clock, endpoint, network, signal } = this.#options
    const tries: Try[] = []
    const startedMs = clock.monotonicMs()
    try {
      const target = connectTarget(endpoint, certificate)
      const connected = await connectToFirst({
        addresses,
        endMs: startedMs + webhookConnectTimeoutMs,
        clock,
        signal,
        connect: (request) => {
          const one: Try = { address: request.address, startedMs: clock.monotonicMs() }
          tries.push(one)
          const watch = {
            onTransport: () => {
              one.transportMs = clock.monotonicMs()
            },
            onCertificate: (socket: TLSSocket) => {
              this.#tls = shownTls(socket)
            },
          }
          return network.connect({ ...request, target, signal, watch })
        },
      })
      this.#connected(tries.at(-1))
      return connected
    } catch (error) {
      throw this.#notConnected({ error, startedMs, tries })
    }
  }

  #connected(one: Try | undefined): void {
    assert(one?.transportMs !== undefined, 'a connection was tried')
    this.#hasTransport(one, one.transportMs)
    if (!this.#options.endpoint.secure) {
      this.#skip('tls', 'an http URL has no TLS')
      return
    }
    const durationMs = this.#options.clock.monotonicMs() - one.transportMs
    this.#ended.set('tls', { state: 'ok', durationMs, text: tlsText(this.#tls) })
  }

  #hasTransport({ address, startedMs }: Try, transportMs: number): void {
    const shown = isIPv6(address) ? `[${address}]` : address
    const text = `to ${shown}:${this.#options.endpoint.port}`
    this.#ended.set('connection', { state: 'ok', durationMs: transportMs - startedMs, text })
  }

  /** The failure is that of the first address. */
  #notConnected({
    error,
    startedMs,
    tries: [first, ...others],
  }: {
    readonly error: unknown
    readonly startedMs: number
    readonly tries: readonly Try[]
  }): WebhookFailure {
    const nowMs = this.#options.clock.monotonicMs()
    const { message, kind } = failureOf(error)
    const more =
      others.length === 0 ? '' : `; ${countOf(others.length, 'other address')} failed, too`
    if (first?.transportMs === undefined) {
      const text = `${first?.address ?? 'no address'}: ${message}${more}`
      return this.#fail('connection', { error, durationMs: nowMs - startedMs, text })
    }
    this.#hasTransport(first, first.transportMs)
    const what = kind === 'timed_out' ? 'TLS: no complete handshake in time' : message
    const durationMs = nowMs - first.transportMs
    return this.#fail('tls', { error, durationMs, text: `${what}${more}` })
  }

  async #post(socket: Socket, address: string): Promise<Done<undefined>> {
    const connection = new PostConnection(this.#options, { socket, address })
    try {
      const response = await this.#within(connection.post(), {
        timeoutMs: webhookResponseTimeoutMs,
        late: new WebhookFailure(noResponse, 'timed_out'),
      })
      this.#response = response
      const { status } = response
      if (classifyResponse(response) !== 'delivered') {
        throw new WebhookFailure(describeStatus(status), 'rejected')
      }
      return { value: undefined, text: statusWords(status) }
    } finally {
      await connection.close()
    }
  }

  /** Settles as `work` does, or rejects with `late` when the time is over or the check is ended. */
  async #within<Value>(
    work: Promise<Value>,
    { timeoutMs, late }: { readonly timeoutMs: number; readonly late: WebhookFailure },
  ): Promise<Value> {
    const { clock, signal } = this.#options
    const own = new AbortController()
    const end = (): void => own.abort()
    signal.addEventListener('abort', end, { once: true })
    if (signal.aborted) end()
    const deadline = sleep(clock, timeoutMs, own.signal).then(() => {
      throw late
    })
    // Nothing awaits the promise that settles second.
    deadline.catch(() => undefined)
    work.catch(() => undefined)
    try {
      return await Promise.race([work, deadline])
    } finally {
      own.abort()
      signal.removeEventListener('abort', end)
    }
  }
}

/** Posts the empty update on a connection of its own. */
class PostConnection {
  readonly #headers: string[]
  readonly #connection: Connection
  #settle: { resolve(response: Response): void; reject(failure: WebhookFailure): void } | undefined

  constructor(
    { clock, endpoint, responseTextOf, signing, ...webhook }: EndpointCheckOptions,
    { socket, address }: { readonly socket: Socket; readonly address: string },
  ) {
    const headers = requestHeaders({ endpoint, secretToken: undefined, ...webhook })
    // Receivers that drop repetitions have not seen this id.
    const signature = new SignatureHeaders(signing, clock).of(
      Math.floor(clock.nowMs()),
      emptyUpdate,
    )
    this.#headers = [...headers, ...(signature ?? [])]
    this.#connection = new Connection({
      socket,
      address,
      origin: endpoint.origin,
      path: endpoint.path,
      headers,
      responseTimeoutMs: webhookResponseTimeoutMs,
      keepAliveMs: webhookResponseTimeoutMs,
      clock,
      lease: endlessLease,
      responseText: responseTextOf?.(address),
      owner: {
        answered: (connection) => this.#settle?.resolve(responseOf(connection)),
        failed: (_connection, _lane, failure) => this.#settle?.reject(failure),
        notSent: () => this.#settle?.reject(new WebhookFailure('Webhook connection closed')),
        lost: () => undefined,
      },
    })
  }

  post(): Promise<Response> {
    return new Promise((resolve, reject) => {
      this.#settle = { resolve, reject }
      const update = { updateId: 0, orderingKey: '', expiresAtS: Infinity, textBytes: 0 }
      const lane = new Lane({ ...update, body: () => emptyUpdate })
      this.#connection.send(lane, emptyUpdate, this.#headers)
    })
  }

  close(): Promise<void> {
    return this.#connection.destroy()
  }
}

/** To be called while the connection reports the response, whose texts it then forgets. */
function responseOf(connection: Connection): Response {
  return {
    status: connection.status,
    deliveryOrder: connection.deliveryOrder,
    headers: connection.responseHeaders,
    body: connection.responseBody,
  }
}

/**
 * Not with `getPeerX509Certificate`: after it, Node 20 finds no names in the certificate when it judges it, and refuses a good one.
 */
function shownTls(socket: TLSSocket): CheckedTls | undefined {
  const { subject, issuer, valid_to: until } = socket.getPeerCertificate()
  if (until === undefined) return undefined
  const untilMs = namedMs(until)
  return {
    version: socket.getProtocol() ?? 'TLS',
    subject: shownName(subject),
    issuer: shownName(issuer),
    validUntilMs: untilMs >= 0 ? untilMs : undefined,
  }
}

/** The name of a subject or an issuer is shown up to this length: usual ones have 100 bytes. */
const certificateNameBytesMax = 256

/** A part of a name may have several values. */
function shownName(name: object | undefined): string {
  const parts = Object.entries(name ?? {}).map(([part, value]) => `${part}=${String(value)}`)
  return shownText(parts.join(', '), { bytesMax: certificateNameBytesMax })
}

function tlsText(tls: CheckedTls | undefined): string {
  if (tls === undefined) return 'ready'
  const { version, subject, issuer, validUntilMs } = tls
  const until = validUntilMs === undefined ? 'an unknown time' : utcText(validUntilMs)
  return `${version}, ${subject}, issued by ${issuer}, valid until ${until}`
}

function countOf(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? '' : 'es'}`
}

/** Bounds the checks of endpoints that a worker makes at a time. */
export class EndpointChecks {
  /** The queues whose endpoint is checked now. */
  readonly #queues = new Set<number>()

  /**
   * Makes a check, unless one for this queue is under way or there are too many.
   *
   * @throws TOO_MANY_REQUESTS
   */
  async run<Result>(queue: number, check: () => Promise<Result>): Promise<Result> {
    if (this.#queues.has(queue) || this.#queues.size >= endpointChecksMax) {
      throw new PostboteError('TOO_MANY_REQUESTS', { retryAfterS: endpointCheckRetryAfterS })
    }
    this.#queues.add(queue)
    try {
      return await check()
    } finally {
      this.#queues.delete(queue)
    }
  }
}
