/**
 * The table of options. Parsing, validation, --help and docs/reference/options.md are derived from its rows; the keys are the
 * fields of `Config`. The environment variable of a row is POSTBOTE_ and its name in upper snake case.
 *
 * A default is the text that a user would give and goes through the same parser, so it cannot be out of range.
 */
import { versionsOfReference } from '../kit/added-type.ts'
import {
  addedTypeList,
  botFilter,
  cidr,
  databaseUrls,
  eventsUrl,
  headerName,
  hostName,
  hostPort,
  integer,
  type Kind,
  listOf,
  listenAddress,
  nodeName,
  onOff,
  oneOf,
  orOff,
  path,
  portalUrl,
  portMax,
  powerOfTwo,
  proxyAddress,
  secretServerUrl,
  upstreamUrl,
} from './config-values.ts'
import { byteSize } from './byte-size.ts'
import { duration } from './duration.ts'
import {
  gib,
  kib,
  mib,
  retentionBytesMax,
  retentionMsMax,
  shardsMax,
  workersMax,
} from '../kit/limits.ts'

export interface OptionRow {
  readonly name: string
  readonly kind: Kind<unknown>
  /** Without a default the value is undefined unless it is given. */
  readonly default?: string
  /** Replaces the default in --help and the documentation if the default is not one fixed text. */
  readonly defaultShown?: string
  readonly sentence: string
  /** A change takes effect only after a restart: the option belongs to the primary or must be the same in all workers. */
  readonly needsRestart?: true
}

/** What options are about, in the order of --help and docs/reference/options.md, with the headings there. */
export const optionGroups = {
  listeners: 'Listeners: the bot API, and the private one for producers and operators',
  store: 'Data and workers',
  cluster: 'Databases and several servers',
  bots: 'Bots and types of updates',
  queues: 'Queues: limits, and what is kept',
  webhooks: 'Webhooks',
  servers: 'Other bot API servers',
  reports: 'Events, traces and the log',
} as const

interface ServerOptionRow extends OptionRow {
  readonly group: keyof typeof optionGroups
}

export const optionTable = {
  httpPort: {
    name: 'http-port',
    group: 'listeners',
    needsRestart: true,
    kind: integer(0, portMax),
    default: '8081',
    sentence: 'Port of the bot API; 0 selects any free port.',
  },
  httpIpAddress: {
    name: 'http-ip-address',
    group: 'listeners',
    needsRestart: true,
    kind: listenAddress,
    default: '0.0.0.0',
    sentence: 'Address of the bot API.',
  },
  httpCert: {
    name: 'http-cert',
    group: 'listeners',
    needsRestart: true,
    kind: path,
    defaultShown: 'none; the bot API speaks plain HTTP',
    sentence:
      'PEM file with the certificate of the bot API, and any intermediate ones: it speaks HTTPS then, and no plain HTTP. A reload reads the file again.',
  },
  httpCertKey: {
    name: 'http-cert-key',
    group: 'listeners',
    needsRestart: true,
    kind: path,
    defaultShown: 'none',
    sentence: 'PEM file with the private key of --http-cert.',
  },
  adminPort: {
    name: 'admin-port',
    group: 'listeners',
    needsRestart: true,
    kind: integer(0, portMax),
    default: '8082',
    sentence:
      'Port of the private listener (ingest, administration, metrics); 0 selects any free port.',
  },
  adminIpAddress: {
    name: 'admin-ip-address',
    group: 'listeners',
    needsRestart: true,
    kind: listenAddress,
    default: '127.0.0.1',
    sentence: 'Address of the private listener.',
  },
  adminCert: {
    name: 'admin-cert',
    group: 'listeners',
    needsRestart: true,
    kind: path,
    defaultShown: 'none; the private listener speaks plain HTTP',
    sentence: 'The same as --http-cert for the private listener.',
  },
  adminCertKey: {
    name: 'admin-cert-key',
    group: 'listeners',
    needsRestart: true,
    kind: path,
    defaultShown: 'none',
    sentence: 'PEM file with the private key of --admin-cert.',
  },
  adminKeyFile: {
    name: 'admin-key-file',
    group: 'listeners',
    needsRestart: true,
    kind: path,
    defaultShown: '`admin.key` in the data directory, created at the first start',
    sentence: 'File that contains the admin key, which may do everything on the private listener.',
  },
  adminHosts: {
    name: 'admin-host',
    group: 'listeners',
    kind: listOf(hostName),
    default: '',
    defaultShown: 'none',
    sentence:
      'Host names that the private listener accepts in the Host header, besides localhost and IP addresses.',
  },
  portal: {
    name: 'portal',
    group: 'listeners',
    kind: portalUrl,
    defaultShown: "none; the owner's page is on the private listener alone",
    sentence:
      "Serves the owner's page on the port of the bot API, too, and is what links to it begin with: the URL at which browsers reach that port; https, or also http with --local. All servers of a database need it.",
  },
  publicHealthz: {
    name: 'public-healthz',
    group: 'listeners',
    kind: onOff,
    default: 'false',
    sentence:
      'Answers /healthz and /readyz on the port of the bot API, too, with the status alone, for load balancers that do not reach the private listener.',
  },
  dir: {
    name: 'dir',
    group: 'store',
    needsRestart: true,
    kind: path,
    default: './data',
    sentence: 'Data directory, created with mode 0700.',
  },
  workers: {
    name: 'workers',
    group: 'store',
    needsRestart: true,
    kind: integer(1, workersMax),
    defaultShown: 'the number of CPUs, or the number of shards if that is lower',
    sentence: 'Number of worker processes; each start may use another number.',
  },
  shards: {
    name: 'shards',
    group: 'store',
    needsRestart: true,
    kind: powerOfTwo(shardsMax),
    defaultShown:
      'the number that the data directory was created with; for a new directory 8, or with more than 8 CPUs the next power of two',
    sentence: 'Number of queue shards, fixed when the data directory is created.',
  },
  windowBytes: {
    name: 'window-memory',
    group: 'store',
    kind: byteSize({ min: mib, max: 65_536 * mib, unit: 'M' }),
    defaultShown:
      '256M, or an eighth of the memory of the machine or container, shared by the workers, if that is less',
    sentence:
      'Memory for pending updates in each worker, and as much again for those that webhooks are about to deliver; updates that do not fit are read from disk when they are needed.',
  },
  diskReserveBytes: {
    name: 'disk-reserve',
    group: 'store',
    kind: byteSize({ max: 1_048_576 * mib, unit: 'M' }),
    default: '256',
    sentence: 'Free disk space below which updates are refused.',
  },
  databases: {
    name: 'database',
    group: 'cluster',
    needsRestart: true,
    kind: databaseUrls,
    default: 'none',
    defaultShown: 'none; the data directory holds the shards',
    sentence:
      'PostgreSQL database that holds the shards, created with `postbote database init`; it may name several servers. Several databases share the shards, always in the same order.',
  },
  databaseMaxBytes: {
    name: 'database-max-size',
    group: 'cluster',
    kind: byteSize({ min: gib, max: 1_048_576 * gib, unit: 'G' }),
    defaultShown: 'none',
    sentence:
      'Pushes for the bots of a database are refused while it is larger than this, so that its disk never fills up.',
  },
  nodeName: {
    name: 'node-name',
    group: 'cluster',
    needsRestart: true,
    kind: nodeName,
    defaultShown: 'the host name',
    sentence: 'Name of this server among all that use the database.',
  },
  requireReplication: {
    name: 'require-replication',
    group: 'cluster',
    needsRestart: true,
    kind: onOff,
    default: 'false',
    sentence:
      'Does not start if the database has no synchronous standby: then the loss of its machine would lose what was acknowledged last.',
  },
  clusterListen: {
    name: 'cluster-listen',
    group: 'cluster',
    needsRestart: true,
    kind: hostPort,
    defaultShown: 'none; no other server can reach this one',
    sentence:
      'Address at which the first worker accepts calls of the other servers of the database; each further worker has the next port.',
  },
  clusterAdvertise: {
    name: 'cluster-advertise',
    group: 'cluster',
    needsRestart: true,
    kind: hostPort,
    defaultShown: 'the value of `--cluster-listen`',
    sentence:
      'Address at which the other servers reach the first worker; required if --cluster-listen is every address of the machine.',
  },
  clusterKeyFile: {
    name: 'cluster-key-file',
    group: 'cluster',
    needsRestart: true,
    kind: path,
    defaultShown: 'none',
    sentence:
      'File with a secret that all servers of the database share, at least 16 bytes, by which they know each other.',
  },
  filter: {
    name: 'filter',
    group: 'bots',
    kind: botFilter,
    defaultShown: 'every bot',
    sentence: 'Serves only the bots whose id divided by M leaves the remainder R.',
  },
  foreignTokens: {
    name: 'foreign-tokens',
    group: 'bots',
    needsRestart: true,
    kind: onOff,
    default: 'false',
    sentence:
      'Lets bots be registered with tokens that another server has made. All servers of a database need the same value.',
  },
  updateTypes: {
    name: 'update-type',
    group: 'bots',
    needsRestart: true,
    kind: addedTypeList,
    default: '',
    defaultShown: 'none',
    sentence:
      'Adds a type of updates to the 22. Bots get it if they name it in allowed_updates. The data directory, or the cluster, keeps a type for ever, so it must be named at each later start.',
  },
  updateTypesOf: {
    name: 'update-types-of',
    group: 'bots',
    needsRestart: true,
    kind: oneOf(versionsOfReference),
    defaultShown: 'none',
    sentence:
      'Adds the types that this version of the Telegram Bot API has besides the 22, as --update-type would.',
  },
  healthInWebhookInfo: {
    name: 'health-in-webhook-info',
    group: 'bots',
    kind: onOff,
    default: 'false',
    sentence:
      'getWebhookInfo has the sentence about the health of the webhook, too, as `health`, which strictly typed clients may refuse.',
  },
  compressOverBytes: {
    name: 'compress',
    group: 'queues',
    kind: orOff(byteSize({ max: 4_096 * kib, unit: 'K' })),
    default: '64',
    sentence:
      'Size above which a list of updates is compressed if the client accepts gzip; off disables compression.',
  },
  checkOverBytes: {
    name: 'check-over',
    group: 'queues',
    kind: orOff(byteSize({ max: 4_096 * kib, unit: 'K' })),
    default: '128',
    sentence:
      'Size from which pushed updates are checked in a helper thread, so that they do not delay other requests; off disables the thread.',
  },
  maxUpdateBytes: {
    name: 'max-update-bytes',
    group: 'queues',
    kind: byteSize({ min: kib, max: 4_194_253 }),
    default: '524288',
    sentence: 'Maximum size of an update.',
  },
  maxPendingUpdates: {
    name: 'max-pending-updates',
    group: 'queues',
    kind: integer(1, 1_000_000_000),
    default: '100000',
    sentence: 'Maximum number of pending updates in one queue.',
  },
  maxPendingBytes: {
    name: 'max-pending-bytes',
    group: 'queues',
    kind: byteSize({ min: kib, max: 1_024 * gib }),
    default: '134217728',
    sentence: 'Maximum size of all pending updates in one queue.',
  },
  retainMs: {
    name: 'retain',
    group: 'queues',
    kind: duration({ maxMs: retentionMsMax }),
    default: '0',
    sentence: 'How long updates that have left a queue are kept to be looked at; 0 keeps none.',
  },
  retainBytes: {
    name: 'retain-bytes',
    group: 'queues',
    kind: byteSize({ max: retentionBytesMax }),
    default: '64MiB',
    sentence: 'Maximum size of what one queue keeps; the oldest goes first.',
  },
  retainTotalBytes: {
    name: 'retain-total-bytes',
    group: 'queues',
    kind: byteSize({ max: retentionBytesMax }),
    default: '1GiB',
    sentence: 'Maximum size of what all queues of the server keep; the oldest goes first.',
  },
  local: {
    name: 'local',
    group: 'webhooks',
    kind: onOff,
    default: 'false',
    sentence:
      'Allows webhooks to use http, any port and reserved addresses, for a server and bots on one network.',
  },
  blockCidrs: {
    name: 'block-cidr',
    group: 'webhooks',
    kind: listOf(cidr),
    default: '',
    defaultShown: 'none',
    sentence: 'Addresses that webhooks may not have, besides the reserved ones.',
  },
  allowCidrs: {
    name: 'allow-cidr',
    group: 'webhooks',
    kind: listOf(cidr),
    default: '',
    defaultShown: 'none',
    sentence: 'Addresses that webhooks may have even if they are reserved or in a --block-cidr.',
  },
  proxy: {
    name: 'proxy',
    group: 'webhooks',
    kind: proxyAddress,
    defaultShown: 'none',
    sentence: 'HTTP proxy for webhook deliveries and verification.',
  },
  maxWebhookConnections: {
    name: 'max-webhook-connections',
    group: 'webhooks',
    kind: integer(1, 1_000),
    default: '100',
    sentence:
      'Maximum number of connections to one webhook; it also limits webhooks that were set with a larger max_connections.',
  },
  maxTotalWebhookConnections: {
    name: 'max-total-webhook-connections',
    group: 'webhooks',
    kind: integer(1, 1_000_000),
    default: '10000',
    sentence: 'Maximum number of webhook connections of all bots together.',
  },
  webhookVerifyTimeoutMs: {
    name: 'webhook-verify-timeout',
    group: 'webhooks',
    kind: duration({ minMs: 100, maxMs: 60_000 }),
    default: '4.5',
    sentence:
      'How long setWebhook tries to reach the webhook; most clients give up after 5 seconds.',
  },
  webhookGoneTimeoutMs: {
    name: 'webhook-gone-timeout',
    group: 'webhooks',
    kind: duration({ minMs: 100, maxMs: 2_678_400_000 }),
    default: '82800',
    sentence: 'How long a webhook may return only 410 Gone before it is removed.',
  },
  secretTokenHeaders: {
    name: 'secret-token-header',
    group: 'webhooks',
    kind: listOf(headerName, 1),
    default: 'X-Service-Bot-Api-Secret-Token,X-Telegram-Bot-Api-Secret-Token',
    sentence:
      'Headers in which deliveries carry the secret_token of the webhook; a value replaces the whole list.',
  },
  noUserAgent: {
    name: 'no-user-agent',
    group: 'webhooks',
    kind: onOff,
    default: 'false',
    sentence:
      'Leaves the User-Agent out of requests to webhooks, which is Postbote/VERSION otherwise, unless the headers of a bot have one.',
  },
  attemptBodyBytes: {
    name: 'attempt-body',
    group: 'webhooks',
    kind: byteSize({ max: 4_096 }),
    default: '1024',
    sentence:
      'How much of the response to a failed delivery the attempts of a webhook show; 0 keeps none.',
  },
  attemptBodyOfReserved: {
    name: 'attempt-body-of-reserved',
    group: 'webhooks',
    kind: onOff,
    default: 'false',
    sentence:
      'Also keeps what endpoints with reserved addresses respond, which --local or --allow-cidr permit: whoever sets webhooks can then have pages of this network shown.',
  },
  upstream: {
    name: 'upstream',
    group: 'servers',
    kind: upstreamUrl,
    defaultShown: 'none',
    sentence:
      'Bot API server that gets the methods that Postbote does not implement, and the methods in responses of webhooks; it receives the tokens of the bots.',
  },
  relayFrom: {
    name: 'relay-from',
    group: 'servers',
    kind: listOf(secretServerUrl),
    default: '',
    defaultShown: 'none',
    sentence:
      'Bot API servers from which relays may take updates; each of them receives the tokens of the bots that are relayed from it.',
  },
  demo: {
    name: 'demo',
    group: 'servers',
    kind: onOff,
    default: 'false',
    sentence:
      'Answers sendMessage and a few other methods as an upstream server would, and logs the messages instead of sending them, to try bots without one.',
  },
  eventsUrl: {
    name: 'events-url',
    group: 'reports',
    kind: eventsUrl,
    defaultShown: 'none',
    sentence:
      'Endpoint that receives the events for the operator, signed; https, or also http with --local.',
  },
  eventsSecretFile: {
    name: 'events-secret-file',
    group: 'reports',
    kind: path,
    defaultShown: 'none; required with --events-url',
    sentence:
      'File with the secret that signs these events: `whsec_` and the base64 text of 24 to 64 random bytes. A second line signs, too, while a new secret is rolled out.',
  },
  traceContext: {
    name: 'trace-context',
    group: 'reports',
    kind: onOff,
    default: 'false',
    sentence:
      'Stores the traceparent of a push with the update and sends it with each delivery, under a new span id. Also on if OTEL_EXPORTER_OTLP_ENDPOINT is set, to which spans are then sent.',
  },
  logLevel: {
    name: 'log-level',
    group: 'reports',
    kind: oneOf(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']),
    default: 'info',
    sentence: 'Lowest level of log lines that are written.',
  },
  logFile: {
    name: 'log-file',
    group: 'reports',
    needsRestart: true,
    kind: path,
    defaultShown: 'none; the log goes to standard output',
    sentence: 'File to which the log is appended; SIGUSR1 opens it again after it was renamed.',
  },
} as const satisfies Record<string, ServerOptionRow>

export function environmentName(optionName: string): string {
  return `POSTBOTE_${optionName.toUpperCase().replaceAll('-', '_')}`
}

export const optionRows: readonly (readonly [field: string, row: ServerOptionRow])[] =
  Object.entries(optionTable)
