/** Makes the webhook layer of a worker: the network that it may use, the blocklist, and a dispatcher per webhook. */
import { readFileSync } from 'node:fs'
import { Piscina } from 'piscina'
import type {
  DispatcherRequest,
  WebhookDispatcher,
  WebhookOfQueue,
  WebhookServices,
} from '../delivery/webhook-services.ts'
import type { Clock } from '../kit/clock.ts'
import type { Config } from '../config/config.ts'
import type { Modules } from '../kit/modules.ts'
import type { UpstreamReplies } from '../bot-api/upstream-replies.ts'
import { entryFiles } from '../entry-files.ts'
import { outcomeMetrics } from '../kit/metrics.ts'
import type { WebhookRecord } from '../shard/records/bot-record.ts'
import { botIdOf, isTestQueue, type QueueId } from '../shard/records/record-keys.ts'
import { AttemptLogs } from '../delivery/attempts/attempt-logs.ts'
import type { DeliveryCounters } from '../delivery/attempts/attempt-recorder.ts'
import { compileBlocklist, isBlocked } from '../http/blocklist.ts'
import { checkCertificates } from '../delivery/endpoint/certificate.ts'
import type { ConnectionSetOptions, WebhookSettings } from '../delivery/endpoint/connection-set.ts'
import { createConnector } from '../delivery/endpoint/connector.ts'
import { Dispatcher, type DispatcherOptions } from '../delivery/dispatcher.ts'
import { type DeliveryHooks, toldBy } from '../delivery/hooks.ts'
import { type Endpoint, parseEndpoint } from '../delivery/endpoint/endpoint.ts'
import { checkEndpoint, type EndpointCheck, EndpointChecks } from '../delivery/endpoint-check.ts'
import type { ServerGate } from '../delivery/pace/flood-gate.ts'
import type { ReplyIntake } from '../delivery/attempts/reply-reader.ts'
import { createHostLookup, readHostsFile, systemLookup } from '../delivery/endpoint/host-lookup.ts'
import { AddressBook } from '../delivery/endpoint/known-addresses.ts'
import { LoadedBytes } from '../delivery/lanes/lane-window.ts'
import {
  type ShownRequest,
  shownRequest,
  userAgentOf,
} from '../delivery/endpoint/request-headers.ts'
import type { SignatureSource } from '../delivery/signature.ts'
import { trustRoots } from '../delivery/endpoint/trust-roots.ts'
import { type Verified, type WebhookNetwork, verifyEndpoint } from '../delivery/endpoint/verify.ts'
import { version } from './own-node.ts'
import type { Counters, Log } from '../kit/surroundings.ts'
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
  readonly modules: Modules<DeliveryHooks>
  /** Set only with `--upstream`. */
  readonly replies: UpstreamReplies | undefined
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
      lookup: createHostLookup(
        clock,
        readHostsFile,
        // Names of a private network matter only if its addresses are allowed.
        config.local || config.allowCidrs.length > 0 ? systemLookup : undefined,
      ),
      judge: (addresses) => this.#addresses.run({ ranges, addresses }),
      connect: createConnector(clock, config.proxy, () =>
        trustRoots({ env: process.env, readFile: (path) => readFileSync(path, 'utf8') }),
      ),
    }
    this.#serverGate = serverGateOf(options)
  }

  /** The network of webhooks, with their rules of addresses. */
  get network(): WebhookNetwork {
    return this.#network
  }

  /** What a dispatcher of anything else shares with those of webhooks. */
  get sender(): Pick<DispatcherOptions, 'clock' | 'network' | 'random' | 'userAgent'> {
    const { clock, random } = this.#options
    return { clock, network: this.#network, random, userAgent: this.#userAgent }
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
    const { config, counters, log, modules, random } = this.#options
    const told = toldBy(request, modules)
    return new Dispatcher({
      ...told,
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
        told.onGone()
      },
      counters: deliveryCounters(counters),
      attempts: request.attempts,
      replies: this.#repliesOf(request),
      responseTextOf: this.#responseTextOf(request),
    })
  }

  /** The timestamp is that of this machine, whatever clock the shard has. */
  #signing(request: WebhookOfQueue, idPrefix: string): SignatureSource {
    return { idPrefix, clock: this.#options.clock, keys: () => request.signingKeys() }
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
