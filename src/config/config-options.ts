/**
 * The table of options. Parsing, validation, --help and docs/options.md are derived from its rows; the keys are the
 * fields of `Config`. The environment variable of a row is POSTBOTE_ and its name in upper snake case.
 *
 * A default is the text that a user would give and goes through the same parser, so it cannot be out of range.
 */
import {
  botFilter,
  cidr,
  headerName,
  hostName,
  integer,
  type Kind,
  listOf,
  listenAddress,
  onOff,
  oneOf,
  orOff,
  path,
  powerOfTwo,
  proxyAddress,
  seconds,
  upstreamUrl,
} from './config-values.ts'
import { shardsMax, workersMax } from '../limits.ts'

const kib = 1024
const mib = 1024 * kib

export interface OptionRow {
  readonly name: string
  readonly kind: Kind<unknown>
  /** Without a default the value is undefined unless it is given. */
  readonly default?: string
  /** Replaces the default in --help and the documentation if the default is not one fixed text. */
  readonly defaultShown?: string
  readonly sentence: string
}

export const optionTable = {
  httpPort: {
    name: 'http-port',
    kind: integer(0, 65_535),
    default: '8081',
    sentence: 'Port of the bot API; 0 takes any free one.',
  },
  httpIpAddress: {
    name: 'http-ip-address',
    kind: listenAddress,
    default: '0.0.0.0',
    sentence: 'Address of the bot API.',
  },
  adminPort: {
    name: 'admin-port',
    kind: integer(0, 65_535),
    default: '8082',
    sentence:
      'Port of the private listener (ingest, administration, metrics); 0 takes any free one.',
  },
  adminIpAddress: {
    name: 'admin-ip-address',
    kind: listenAddress,
    default: '127.0.0.1',
    sentence: 'Address of the private listener.',
  },
  adminKeyFile: {
    name: 'admin-key-file',
    kind: path,
    defaultShown: '`admin.key` in the data directory, made at the first start',
    sentence: 'File with the key that the private listener asks for.',
  },
  adminHosts: {
    name: 'admin-host',
    kind: listOf(hostName),
    default: '',
    defaultShown: 'none',
    sentence:
      'Names that a Host header of the private listener may have besides localhost and IP addresses.',
  },
  dir: {
    name: 'dir',
    kind: path,
    default: './data',
    sentence: 'Data directory, created with mode 0700.',
  },
  workers: {
    name: 'workers',
    kind: integer(1, workersMax),
    defaultShown: 'the number of CPUs, at most that of shards',
    sentence: 'Number of worker processes; may change from start to start.',
  },
  shards: {
    name: 'shards',
    kind: powerOfTwo(shardsMax),
    defaultShown:
      'what the data directory was made with; for a new one 8, or the next power of two from the number of CPUs up',
    sentence: 'Number of queue shards, fixed when the data directory is made.',
  },
  local: {
    name: 'local',
    kind: onOff,
    default: 'false',
    sentence:
      'Lets webhooks use http, any port and reserved addresses: for a server and bots on one network.',
  },
  maxWebhookConnections: {
    name: 'max-webhook-connections',
    kind: integer(1, 1_000),
    default: '100',
    sentence:
      'The most connections that a webhook may have; a stored webhook that asked for more gets this many.',
  },
  maxTotalWebhookConnections: {
    name: 'max-total-webhook-connections',
    kind: integer(1, 1_000_000),
    default: '10000',
    sentence: 'The most webhook connections of all bots together.',
  },
  webhookVerifyTimeoutMs: {
    name: 'webhook-verify-timeout',
    kind: seconds(0.1, 60),
    default: '4.5',
    sentence:
      'How long setWebhook tries to reach the webhook; most clients give up after 5 seconds.',
  },
  webhookGoneTimeoutMs: {
    name: 'webhook-gone-timeout',
    kind: seconds(0.1, 2_678_400),
    default: '82800',
    sentence: 'How long a webhook may answer nothing but 410 Gone until it is removed.',
  },
  secretTokenHeaders: {
    name: 'secret-token-header',
    kind: listOf(headerName, 1),
    default: 'X-Service-Bot-Api-Secret-Token,X-Telegram-Bot-Api-Secret-Token',
    sentence: "Headers that carry a webhook's secret_token; giving one replaces the whole list.",
  },
  proxy: {
    name: 'proxy',
    kind: proxyAddress,
    defaultShown: 'none',
    sentence:
      'HTTP proxy for webhook deliveries and their verification; best set in the environment or the file, since other users of the machine can read flags.',
  },
  upstream: {
    name: 'upstream',
    kind: upstreamUrl,
    defaultShown: 'none',
    sentence:
      'Bot API server that gets the methods this one does not have, and those that webhooks name in their answers; it sees the tokens of the bots.',
  },
  blockCidrs: {
    name: 'block-cidr',
    kind: listOf(cidr),
    default: '',
    defaultShown: 'none',
    sentence: 'Addresses that webhooks must not have, besides the reserved ones.',
  },
  allowCidrs: {
    name: 'allow-cidr',
    kind: listOf(cidr),
    default: '',
    defaultShown: 'none',
    sentence: 'Addresses that webhooks may have whatever else forbids them.',
  },
  filter: {
    name: 'filter',
    kind: botFilter,
    defaultShown: 'every bot',
    sentence: 'Serves only the bots whose id leaves the remainder R when divided by M.',
  },
  compressOverBytes: {
    name: 'compress',
    kind: orOff(integer(0, 4_096, { unit: 'KiB', bytes: kib })),
    default: '64',
    sentence:
      'Lists of updates over this size are compressed where the client offers gzip; off never compresses.',
  },
  checkOverBytes: {
    name: 'check-over',
    kind: orOff(integer(0, 4_096, { unit: 'KiB', bytes: kib })),
    default: '128',
    sentence:
      'Pushed updates of this size and more are checked in a thread, so that they hold up nothing else; off checks all in place.',
  },
  maxUpdateBytes: {
    name: 'max-update-bytes',
    kind: integer(1_024, 4_194_253),
    default: '524288',
    sentence: 'The largest update that is accepted, in bytes.',
  },
  maxPendingUpdates: {
    name: 'max-pending-updates',
    kind: integer(1, 1_000_000_000),
    default: '100000',
    sentence: 'The most updates that wait in the queue of one bot.',
  },
  maxPendingBytes: {
    name: 'max-pending-bytes',
    kind: integer(1_024, 2 ** 40),
    default: '134217728',
    sentence: 'The most bytes of updates that wait in the queue of one bot.',
  },
  windowBytes: {
    name: 'window-memory',
    kind: integer(1, 65_536, { unit: 'MiB', bytes: mib }),
    default: '256',
    sentence: 'Queued updates that each worker keeps in memory; older ones are read from disk.',
  },
  diskReserveBytes: {
    name: 'disk-reserve',
    kind: integer(0, 1_048_576, { unit: 'MiB', bytes: mib }),
    default: '256',
    sentence: 'Updates are refused while the disk has less than this free.',
  },
  logLevel: {
    name: 'log-level',
    kind: oneOf(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']),
    default: 'info',
    sentence: 'The least important log lines that are written.',
  },
} as const satisfies Record<string, OptionRow>

export function environmentName(optionName: string): string {
  return `POSTBOTE_${optionName.toUpperCase().replaceAll('-', '_')}`
}

export const optionRows: readonly (readonly [field: string, row: OptionRow])[] =
  Object.entries(optionTable)
