/** Makes the webhook layer of a worker: the network that it may use, the blocklist, and a dispatcher per webhook. */
import { readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { Piscina } from 'piscina'
import type {
  DispatcherRequest,
  WebhookDispatcher,
  WebhookOfQueue,
  WebhookServices,
} from '../delivery/webhook-services.ts'
import type { Clock } from '../kit/clock.ts'
import type { Config } from '../config/config.ts'
import type { Counters } from '../kit/counters.ts'
import type { UpstreamReplies } from '../bot-api/upstream-replies.ts'
import type { OperatorEventType, ReportEvent } from '../kit/operator-event.ts'
import { entryFiles } from '../entry-files.ts'
import { outcomeMetrics } from '../kit/metrics.ts'
import { isQueued } from '../queue/queued-update.ts'
import type { WebhookRecord } from '../shard/records/bot-record.ts'
import { botIdOf, isTestQueue, type QueueId, queueParts } from '../shard/records/record-keys.ts'
import type { Attempt } from '../delivery/attempts/attempt.ts'
import type { AttemptOutcome } from '../delivery/attempts/attempt-log.ts'
import { AttemptLogs } from '../delivery/attempts/attempt-logs.ts'
import type { DeliveryCounters } from '../delivery/attempts/attempt-recorder.ts'
import { compileBlocklist, isBlocked } from '../http/blocklist.ts'
import { checkCertificates } from '../delivery/endpoint/certificate.ts'
import type {
  ConnectionSetOptions,
  TraceOfAttempt,
  WebhookSettings,
} from '../delivery/endpoint/connection-set.ts'
import { createConnector } from '../delivery/endpoint/connector.ts'
import { Dispatcher } from '../delivery/dispatcher.ts'
import { type Endpoint, hostOfWebhook, parseEndpoint } from '../delivery/endpoint/endpoint.ts'
import { checkEndpoint, type EndpointCheck } from '../delivery/endpoint-check.ts'
import { EndpointChecks } from '../delivery/endpoint-checks.ts'
import type { DeliverySource } from '../delivery/delivery-source.ts'
import type { ServerGate } from '../delivery/pace/flood-gate.ts'
import type { ReplyIntake } from '../delivery/attempts/reply-reader.ts'
import { createHostLookup, systemLookup } from '../delivery/endpoint/host-lookup.ts'
import { AddressBook } from '../delivery/endpoint/known-addresses.ts'
import { LoadedBytes } from '../delivery/lanes/loaded-bytes.ts'
import {
  type ShownRequest,
  shownRequest,
  userAgentOf,
} from '../delivery/endpoint/request-headers.ts'
import type { SignatureSource } from '../delivery/signature.ts'
import { trustRoots } from '../delivery/endpoint/trust-roots.ts'
import { type Verified, type WebhookNetwork, verifyEndpoint } from '../delivery/endpoint/verify.ts'
import type { AttemptEvents } from '../features/events/attempt-events.ts'
import type { EventDispatcher } from '../features/events/event-sender.ts'
import { version } from './own-node.ts'
import type { EventTarget } from '../features/events/worker-events.ts'
import type { Log } from '../kit/surroundings.ts'
import type { Tracer } from '../kit/tracing/tracer.ts'
import { SharedServerGate } from '../process/shared-memory/shared-server-gate.ts'
import type { SharedMemory } from '../process/shared-memory/shared-memory.ts'

export interface WebhookFactoryOptions {
  readonly config: Config
  /** For the updates that webhooks have loaded. */
  readonly windowBytes: number
  readonly clock: Clock
  readonly random: () => number
  readonly counters: Counters
  readonly memory: SharedMemory
  readonly log: Log
  readonly report: ReportEvent
  /** Receives the attempts that readers of events ask for. */
  readonly attemptEvents?: Pick<AttemptEvents, 'isWanted' | 'report'>
  /** Set only with `--upstream`. */
  readonly replies: UpstreamReplies | undefined
  /** Absent if updates are not traced. */
  readonly tracer?: Tracer | undefined
}

/**
 * The thread that checks addresses ends after this idle time. Chosen: setWebhook calls and look-ups come in groups; a
 * thread takes 5 to 10 MB.
 */
const addressPoolIdleMs = 30_000

export class WebhookFactory implements WebhookServices {
  readonly attempts = new AttemptLogs()
  readonly addresses = new AddressBook()
  readonly connectionsMax: number
  readonly #options: WebhookFactoryOptions
  readonly #network: WebhookNetwork
  readonly #serverGate: ServerGate
  readonly #addresses: Piscina<unknown, boolean[]>
  readonly #loaded: LoadedBytes
  readonly #checks = new EndpointChecks()
  readonly #userAgent: string | undefined

  constructor(options: WebhookFactoryOptions) {
    const { config, clock, log } = options
    this.#options = options
    this.connectionsMax = config.maxWebhookConnections
    this.#userAgent = config.noUserAgent ? undefined : userAgentOf(version)
    this.#loaded = new LoadedBytes(options.windowBytes)
    const ranges = compileBlocklist({
      local: config.local,
      block: config.blockCidrs,
      allow: config.allowCidrs,
    })
    this.#addresses = new Piscina({
      filename: entryFiles.checkAddress.href,
      minThreads: 0,
      maxThreads: 1,
      idleTimeout: addressPoolIdleMs,
    })
    // A thread may die between two tasks; without a listener the error would end the process.
    this.#addresses.on('error', (error: unknown) => {
      log.error({ error: String(error) }, 'the thread that checks addresses failed')
    })
    this.#network = {
      lookup: createHostLookup({
        clock,
        readHosts,
        // Names of a private network matter only if its addresses are allowed.
        local: config.local || config.allowCidrs.length > 0 ? systemLookup : undefined,
      }),
      judge: (addresses) => this.#addresses.run({ ranges, addresses }),
      connect: createConnector({
        clock,
        proxy: config.proxy,
        trustRoots: () =>
          trustRoots({ env: process.env, readFile: (path) => readFileSync(path, 'utf8') }),
      }),
    }
    this.#serverGate = serverGateOf(options)
  }

  /** The network of webhooks, with their rules of addresses. */
  get network(): WebhookNetwork {
    return this.#network
  }

  parseEndpoint(url: string): Endpoint {
    return parseEndpoint(url, { local: this.#options.config.local })
  }

  async verify(request: {
    readonly endpoint: Endpoint
    readonly webhook: WebhookRecord
    readonly signal: AbortSignal
  }): Promise<Verified> {
    const { clock, config } = this.#options
    const { certificate } = request.webhook
    // Not together with the parameters: a bot that repeats setWebhook faster than allowed must not cause a parse each
    // time.
    if (certificate !== undefined) checkCertificates(certificate)
    return verifyEndpoint({
      endpoint: request.endpoint,
      ipAddress: request.webhook.ipAddress,
      certificate,
      network: this.#network,
      clock,
      timeoutMs: config.webhookVerifyTimeoutMs,
      signal: request.signal,
    })
  }

  check(request: Parameters<WebhookServices['check']>[0]): Promise<EndpointCheck> {
    const { clock, config } = this.#options
    const { known, ofBot, queueId, signal, webhook } = request
    return this.#checks.run(queueId, () =>
      checkEndpoint({
        ...webhook,
        headers: ofBot.headers,
        endpoint: parseEndpoint(webhook.url, { local: true }),
        secretHeaderNames: config.secretTokenHeaders,
        userAgent: this.#userAgent,
        signing: this.#signing(request, `${deliveryIdPrefix(queueId)}check-`),
        known,
        network: this.#network,
        clock,
        signal,
        refusalOf: (address) =>
          !config.local && isBlocked(reservedAddresses, address)
            ? 'it is reserved, and no --allow-cidr permits it'
            : 'it is in a range of --block-cidr',
        responseTextOf: this.#responseTextOf(request),
      }),
    )
  }

  requestOf(of: WebhookOfQueue): ShownRequest {
    const { webhook } = of
    const { clock, config } = this.#options
    const nowMs = clock.nowMs()
    return shownRequest({
      endpoint: parseEndpoint(webhook.url, { local: true }),
      secretToken: webhook.secretToken,
      headers: of.ofBot.headers,
      secretHeaderNames: config.secretTokenHeaders,
      userAgent: this.#userAgent,
      isSigned: (of.signingKeys() ?? []).some(({ endsAtMs = Infinity }) => nowMs < endsAtMs),
    })
  }

  createDispatcher(request: DispatcherRequest): WebhookDispatcher {
    const { clock, config, counters, log, random } = this.#options
    const report = (type: OperatorEventType, reason?: string): void => {
      const { queueId, webhook } = request
      this.#options.report({
        type,
        timeMs: clock.nowMs(),
        botId: botIdOf(queueId),
        isTest: isTestQueue(queueId),
        host: hostOfWebhook(webhook.url),
        reason,
      })
    }
    return new Dispatcher({
      settings: settingsOf(request),
      source: request.source,
      addresses: request.addresses,
      clock: request.clock,
      random,
      network: this.#network,
      secretHeaderNames: config.secretTokenHeaders,
      userAgent: this.#userAgent,
      signing: this.#signing(request, deliveryIdPrefix(request.queueId)),
      goneTimeoutMs: config.webhookGoneTimeoutMs,
      serverGate: this.#serverGate,
      loaded: this.#loaded,
      limit: request.limit,
      lease: request.lease,
      onGone: () => {
        const bot = `bot${botIdOf(request.queueId)}`
        log.warn({ bot }, 'a webhook returned 410 Gone for too long and was removed')
        report('webhook.removed')
        request.onGone()
      },
      onGoneClock: (sinceMs) => request.onGoneClock(sinceMs),
      onFailing: (error) => report('webhook.failing', error),
      onRecovered: () => report('webhook.recovered'),
      onHealth: () => request.onHealth(),
      onAttempt: (attempt, outcome) => {
        if (outcome !== 'delivered') request.onAttemptFailed()
        this.#reportAttempt(request, attempt)
        if (attempt.traceparent !== undefined) this.#traceAttempt(request, attempt, outcome)
      },
      counters: deliveryCounters(counters),
      attempts: request.attempts,
      replies: this.#repliesOf(request),
      responseTextOf: this.#responseTextOf(request),
      traceOf: this.#traceOf(request),
    })
  }

  /** Creates the dispatcher of events for the operator, who may name any address. */
  createEventDispatcher(
    { url, keys, idPrefix }: EventTarget,
    source: DeliverySource,
  ): EventDispatcher {
    const { clock, counters, random } = this.#options
    return new Dispatcher({
      settings: { url, maxConnections: 1 },
      source,
      clock,
      random,
      network: {
        ...this.#network,
        lookup: createHostLookup({ clock, readHosts, local: systemLookup }),
        judge: async (addresses) => addresses.map(() => true),
      },
      secretHeaderNames: [],
      userAgent: this.#userAgent,
      signing: { idPrefix, keys: () => keys },
      goneTimeoutMs: Number.POSITIVE_INFINITY,
      serverGate: openGate,
      onGone: ignore,
      onGoneClock: ignore,
      counters: {
        add: (outcome, count) => {
          if (outcome !== 'delivered') counters.add('operator_events_failed', count)
        },
      },
    })
  }

  /** The timestamp is that of this machine, whatever clock the shard has. */
  #signing(request: WebhookOfQueue, idPrefix: string): SignatureSource {
    return { idPrefix, clock: this.#options.clock, keys: () => request.signingKeys() }
  }

  #reportAttempt({ queueId, webhook }: DispatcherRequest, attempt: Readonly<Attempt>): void {
    const { attemptEvents } = this.#options
    if (attemptEvents?.isWanted(attempt.atMs) !== true) return
    const { updateId, status, error } = attempt
    attemptEvents.report({
      type: error === undefined ? 'attempt.delivered' : 'attempt.failed',
      timeMs: attempt.atMs,
      botId: botIdOf(queueId),
      isTest: isTestQueue(queueId),
      host: hostOfWebhook(webhook.url),
      updateId: updateId === 0 ? undefined : updateId,
      status: status === 0 ? undefined : status,
      durationMs: Math.round(attempt.durationMs),
      reason: error,
    })
  }

  #traceOf({ queueId, clock }: DispatcherRequest): TraceOfAttempt | undefined {
    const { tracer } = this.#options
    if (tracer === undefined) return undefined
    return (update, failures) => {
      const { traceparent, updateId } = update
      if (traceparent === undefined) return undefined
      if (failures === 0 && tracer.hasSpans && isQueued(update)) {
        const times = { startMs: update.storedAtMs, endMs: clock.nowMs() }
        tracer.waited({ ...queueParts(queueId), traceparent, updateId, mode: 'webhook', ...times })
      }
      return tracer.attempt(traceparent)
    }
  }

  #traceAttempt(
    { queueId, webhook }: DispatcherRequest,
    attempt: Readonly<Attempt>,
    outcome: AttemptOutcome,
  ): void {
    const { updateId, traceparent, status, atMs: endMs, durationMs } = attempt
    const { tracer } = this.#options
    if (traceparent === undefined || tracer?.hasSpans !== true) return
    tracer.delivered({
      ...queueParts(queueId),
      traceparent,
      updateId,
      outcome,
      status,
      host: hostOfWebhook(webhook.url),
      startMs: endMs - durationMs,
      endMs,
    })
  }

  /** Undefined for a webhook that was set while there was no upstream: its bot's token is not known. */
  #repliesOf({ queueId, webhook }: DispatcherRequest): ReplyIntake | undefined {
    const { sealedToken } = webhook
    if (sealedToken === undefined) return undefined
    return this.#options.replies?.intakeOf({ sealedToken, isTest: isTestQueue(queueId) })
  }

  /** Responses of reserved addresses are not kept by default, or whoever may set a webhook could read pages of this network. */
  #responseTextOf(request: WebhookOfQueue): ConnectionSetOptions['responseTextOf'] {
    const { attemptBodyBytes: bytesMax, attemptBodyOfReserved } = this.#options.config
    if (bytesMax === 0) return undefined
    const options = {
      bytesMax,
      secrets: () => (request.signingKeys() ?? []).map(({ secret }) => secret),
    }
    return (address) =>
      attemptBodyOfReserved || !isBlocked(reservedAddresses, address) ? options : undefined
  }

  async close(): Promise<void> {
    await this.#addresses.close({ force: true })
  }
}

/** A bot for which nothing is set has the record itself. */
function settingsOf({ webhook, ofBot }: DispatcherRequest): WebhookSettings {
  const { headers, retryDelaysS } = ofBot
  if (headers === undefined && retryDelaysS === undefined) return webhook
  return { ...webhook, headers, retryDelaysS }
}

const reservedAddresses = compileBlocklist({ local: false, block: [], allow: [] })

function readHosts(): Promise<string> {
  return readFile('/etc/hosts', 'utf8').catch(() => '')
}

/** The one connection for events does not count among those of webhooks. */
const openGate: ServerGate = {
  mayOpen: () => true,
  opened: ignore,
  closed: ignore,
  mayIdle: () => true,
  turnedAway: ignore,
  mustYield: () => false,
}

function ignore(): void {
  // Nothing to do.
}

/** Returns `4711-` or, for a /test/ queue, `4711-test-`: followed by the update id, it identifies one delivery. */
function deliveryIdPrefix(queue: QueueId): string {
  return `${botIdOf(queue)}-${isTestQueue(queue) ? 'test-' : ''}`
}

export function deliveryCounters(counters: Counters): DeliveryCounters {
  return {
    took: (durationMs) => counters.observe('attempt', durationMs),
    add(outcome, amount) {
      counters.add('webhook_attempts', amount)
      if (outcome === 'delivered') return
      counters.add('webhook_failures', amount)
      counters.add(outcomeMetrics[outcome], amount)
    },
  }
}

/** Enforces `--max-total-webhook-connections` over all workers. */
function serverGateOf({ config, counters, memory }: WebhookFactoryOptions): ServerGate {
  return new SharedServerGate({
    connectionsMax: config.maxTotalWebhookConnections,
    total: () => memory.total('webhook_connections_active'),
    add: (amount) => counters.add('webhook_connections_active', amount),
    turnedAway: () => memory.total('webhooks_turned_away'),
    addTurnedAway: () => counters.add('webhooks_turned_away', 1),
  })
}
