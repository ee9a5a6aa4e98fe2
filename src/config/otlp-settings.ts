/**
 * The standard variables of OpenTelemetry that say whether spans are sent, and in which pieces. The exporter in its thread reads
 * those that say where to and how (`workers/export-spans.ts`): OTEL_EXPORTER_OTLP_HEADERS, _TIMEOUT, _COMPRESSION and _CERTIFICATE,
 * OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES.
 */

/** How spans are sent. */
export interface OtlpSettings {
  /** Of the standard, `http/json` or `http/protobuf`. */
  readonly protocol: (typeof protocols)[number]
  /** This many spans wait at most; further ones are dropped. */
  readonly queueMax: number
  /** One request has this many spans at most. */
  readonly batchMax: number
  /** A span waits this long for others. */
  readonly delayMs: number
}

type Environment = Readonly<Record<string, string | undefined>>

/** `grpc` would need another library. Any OTLP receiver over HTTP takes both. */
const protocols = ['http/json', 'http/protobuf'] as const
/** The defaults of the standard. */
const numbers = {
  OTEL_BSP_MAX_QUEUE_SIZE: { min: 1, max: 100_000, usual: 2_048 },
  OTEL_BSP_MAX_EXPORT_BATCH_SIZE: { min: 1, max: 10_000, usual: 512 },
  OTEL_BSP_SCHEDULE_DELAY: { min: 1, max: 3_600_000, usual: 5_000 },
} as const
const numberNames = [
  'OTEL_BSP_MAX_QUEUE_SIZE',
  'OTEL_BSP_MAX_EXPORT_BATCH_SIZE',
  'OTEL_BSP_SCHEDULE_DELAY',
] as const
const endpoints = ['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', 'OTEL_EXPORTER_OTLP_ENDPOINT'] as const
const protocolNames = ['OTEL_EXPORTER_OTLP_TRACES_PROTOCOL', 'OTEL_EXPORTER_OTLP_PROTOCOL'] as const

/** Returns how spans are sent; undefined if no endpoint is set, or the standard variables turn it off. */
export function otlpSettings(env: Environment): OtlpSettings | undefined {
  const isOff =
    env['OTEL_SDK_DISABLED']?.trim().toLowerCase() === 'true' ||
    !['', 'otlp'].includes(env['OTEL_TRACES_EXPORTER']?.trim() ?? '')
  if (isOff || firstOf(env, endpoints) === undefined) return undefined
  const named = firstOf(env, protocolNames)
  return {
    protocol: protocols.find((protocol) => protocol === named?.text) ?? protocols[0],
    queueMax: settingOf(env, 'OTEL_BSP_MAX_QUEUE_SIZE'),
    batchMax: settingOf(env, 'OTEL_BSP_MAX_EXPORT_BATCH_SIZE'),
    delayMs: settingOf(env, 'OTEL_BSP_SCHEDULE_DELAY'),
  }
}

/** Returns what is wrong with the variables, if spans are sent. No problem shows a value: it may have a password. */
export function otlpProblems(env: Environment): readonly string[] {
  if (otlpSettings(env) === undefined) return []
  const problems: string[] = []
  const endpoint = firstOf(env, endpoints)
  if (endpoint !== undefined && !isHttpUrl(endpoint.text)) {
    problems.push(`${endpoint.name}: expected a URL that begins with http:// or https://`)
  }
  const protocol = firstOf(env, protocolNames)
  if (protocol !== undefined && !protocols.some((known) => known === protocol.text)) {
    problems.push(`${protocol.name}: expected ${protocols.join(' or ')}`)
  }
  for (const name of numberNames) {
    const { min, max } = numbers[name]
    const isGiven = (env[name] ?? '') !== ''
    if (isGiven && numberOf(env, name) === undefined) {
      problems.push(`${name}: expected a whole number from ${min} to ${max}`)
    }
  }
  return problems
}

/** An empty variable counts as absent, as the standard says. */
function firstOf(
  env: Environment,
  names: readonly string[],
): { readonly name: string; readonly text: string } | undefined {
  for (const name of names) {
    const text = env[name]?.trim() ?? ''
    if (text !== '') return { name, text }
  }
  return undefined
}

function settingOf(env: Environment, name: keyof typeof numbers): number {
  return numberOf(env, name) ?? numbers[name].usual
}

function numberOf(env: Environment, name: keyof typeof numbers): number | undefined {
  const text = env[name] ?? ''
  const { min, max } = numbers[name]
  const number = Number(text)
  return /^\d{1,9}$/.test(text) && number >= min && number <= max ? number : undefined
}

function isHttpUrl(text: string): boolean {
  const url = URL.canParse(text) ? new URL(text) : undefined
  return url?.protocol === 'http:' || url?.protocol === 'https:'
}
