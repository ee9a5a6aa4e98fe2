/**
 * Reads the options. Flags take precedence over the environment, the environment over the file, and the file over the
 * defaults (the table is in config-options.ts).
 *
 * Nothing is ignored: an unknown flag, POSTBOTE_* variable or key of the file, and every value outside its range, is an
 * error that names it as it was given. All errors are reported together. A message never contains a secret, and never the
 * text after an unknown flag, because that may be a secret whose flag was mistyped.
 */
import { isDeepStrictEqual } from 'node:util'
import { isIP } from 'node:net'
import { addedTypesMax, givenTypes } from '../kit/added-type.ts'
import { adviceFor } from '../kit/text/advice-for.ts'
import { visibleJson } from '../kit/text/visible.ts'
import { clusterConfigProblems, type SourceOf } from './cluster-config.ts'
import { environmentName, type OptionRow, optionRows, optionTable } from './config-options.ts'
import { isSocketPath, type Kind, path, refused } from './config-values.ts'
import { otlpProblems } from './otlp-settings.ts'
import { type Given, optionShownMax, readFlags } from './read-flags.ts'

type Rows = typeof optionTable
type ValueOf<K> = K extends Kind<infer T> ? T : never

/** The parsed options. Durations are in milliseconds and sizes in bytes, whatever unit the option has. */
export type Config = {
  readonly [Field in keyof Rows]:
    | ValueOf<Rows[Field]['kind']>
    | (Rows[Field] extends { readonly default: unknown } ? never : undefined)
}

/** The sources of options. */
export interface ConfigSources {
  /** The arguments without the program and its command. */
  readonly argv: readonly string[]
  readonly env: Readonly<Record<string, string | undefined>>
  readonly readFile: (file: string) => string
  /** A client of a server needs its certificates, and not their private keys. Default: the server. */
  readonly of?: ConfigReader
}

export type ConfigReader = 'client' | 'server'

/** Options that cannot be used; the message lists every problem on its own line. */
export class ConfigError extends Error {
  readonly problems: readonly string[]

  constructor(problems: readonly string[]) {
    super(problems.join('\n'))
    this.name = 'ConfigError'
    this.problems = problems
  }
}

/** Names a file with options of the server. It is not in the table, because it is a source of them. */
export const configFileOption = {
  name: 'config',
  kind: path,
  sentence: 'JSON file with options of the server.',
} as const
const rowsByName = new Map<string, OptionRow>(optionRows.map(([, row]) => [row.name, row]))

/**
 * Returns whether the arguments ask for `helpText()` instead of a start.
 *
 * @param argv - the arguments, with or without a command
 */
export function isHelpAsked(argv: readonly string[]): boolean {
  return argv.includes('--help') || argv.includes('-h')
}

/**
 * Reads and validates all options.
 *
 * @param sources - where options come from; `readFile` reads the file that `--config` names, if any
 * @returns the options, with the default of each one that is not given
 * @throws ConfigError with all problems, if there are any
 */
export function parseConfig(sources: ConfigSources): Config {
  const problems: string[] = []
  const flags = readFlags(sources.argv, {
    rows: [...rowsByName.values(), configFileOption],
    problems,
    onWord: (_, index) => problems.push(`argument ${index + 1} belongs to no option; see --help`),
    unknown: (source) =>
      `${source}: unknown option${meantBy(source, [...rowsByName.keys(), configFileOption.name], '--')}; see --help`,
  })
  const environment = readEnvironment(sources.env, problems)
  const file = readConfigFile(
    flags.get(configFileOption.name) ?? environment.get(configFileOption.name),
    {
      readFile: sources.readFile,
      problems,
    },
  )
  const given: Given = new Map([...file, ...environment, ...flags])

  const values: Record<string, unknown> = {}
  for (const [field, row] of optionRows) {
    values[field] = valueOf(row, { given, problems })
  }
  // `Config` is made of the table's keys and kinds, and TypeScript cannot follow that through a loop.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  const config = values as Config
  problems.push(...otlpProblems(sources.env))
  if (problems.length === 0) checkTogether(config, { given, of: sources.of }, problems)
  if (problems.length > 0) throw new ConfigError(problems)
  return config
}

/**
 * Returns options that an earlier version has read, with the defaults of those that it does not know: after an upgrade, a
 * reload starts new workers under the old primary.
 */
export function withNewOptions(earlier: Config): Config {
  const given: Given = new Map()
  const defaults = optionRows
    .filter(([field]) => !Object.hasOwn(earlier, field))
    .map(([field, row]) => [field, valueOf(row, { given, problems: [] })])
  return { ...earlier, ...Object.fromEntries(defaults) }
}

/** @param prefix - what stands before each name, and is no part of what is alike */
function meantBy(given: string, names: readonly string[], prefix = ''): string {
  if (!given.startsWith(prefix)) return ''
  const name = given.slice(prefix.length, prefix.length + optionShownMax)
  return adviceFor(
    name,
    names.map((each) => each.replace(prefix, '')),
    prefix,
  )
}

function readEnvironment(env: ConfigSources['env'], problems: string[]): Given {
  const names = new Map(
    [...rowsByName.keys(), configFileOption.name].map((n) => [environmentName(n), n]),
  )
  const given: Given = new Map()
  for (const [variable, text] of Object.entries(env)) {
    // An empty variable counts as absent: `X=${UNSET}` in a compose file makes one.
    if (!variable.startsWith('POSTBOTE_') || text === undefined) continue
    if (isServiceLink(variable, text)) continue
    const name = names.get(variable)
    if (name === undefined) {
      const shownName = variable.slice(0, optionShownMax)
      const meant = meantBy(shownName, [...names.keys()], 'POSTBOTE_')
      problems.push(`${shownName}: unknown environment variable${meant}; see --help`)
    } else if (text !== '') given.set(name, { source: variable, text })
  }
  return given
}

function readConfigFile(
  from: { readonly source: string; readonly text: string } | undefined,
  context: { readonly readFile: (file: string) => string; readonly problems: string[] },
): Given {
  const given: Given = new Map()
  if (from === undefined) return given
  const file = from.text
  const refuse = (what: string, got: unknown): void => {
    context.problems.push(`${from.source} ${shown(file)}: expected ${what}, got ${reasonOf(got)}`)
  }
  let text: string
  try {
    text = context.readFile(file)
  } catch (error) {
    refuse('a readable file', error)
    return given
  }
  let content: unknown
  try {
    content = JSON.parse(text)
  } catch {
    // The parser's own message quotes the file, which may contain a password.
    refuse('a JSON object', 'something that is not JSON')
    return given
  }
  if (typeof content !== 'object' || content === null || Array.isArray(content)) {
    refuse('a JSON object', 'another JSON value')
    return given
  }
  for (const [key, value] of Object.entries(content)) {
    const source = `key ${shown(key)} of ${file}`
    const row = rowsByName.get(key)
    const flat = flatten(value, row?.kind.separator)
    if (row === undefined)
      context.problems.push(
        `${source}: unknown key${meantBy(key, [...rowsByName.keys()])}; see --help`,
      )
    else if (flat === undefined) context.problems.push(`${source}: expected ${row.kind.expected}`)
    else given.set(key, { source, text: flat })
  }
  return given
}

function flatten(value: unknown, separator: string | undefined): string | undefined {
  if (typeof value === 'string') return value
  if (typeof value === 'number' || typeof value === 'boolean') return `${value}`
  if (separator === undefined || !Array.isArray(value)) return undefined
  return value.every((item) => typeof item === 'string') ? value.join(separator) : undefined
}

function valueOf(
  row: OptionRow,
  context: { readonly given: Given; readonly problems: string[] },
): unknown {
  const given = context.given.get(row.name)
  if (given === undefined) {
    return row.default === undefined ? undefined : row.kind.parse(row.default)
  }
  const value = row.kind.parse(given.text)
  if (value !== refused) return value
  const got = row.kind.isSecret === true ? 'something else' : shown(given.text)
  context.problems.push(`${given.source}: expected ${row.kind.expected}, got ${got}`)
  return undefined
}

/** Checks the rules that concern several options. */
function checkTogether(
  config: Config,
  { given, of }: { readonly given: Given; readonly of?: ConfigReader | undefined },
  problems: string[],
): void {
  const { workers, shards, maxPendingBytes, maxUpdateBytes } = config
  const sourceOf: SourceOf = (name) => given.get(name)?.source
  if (workers !== undefined && shards !== undefined && workers > shards) {
    problems.push(
      `${sourceOf('workers')}: expected at most ${shards}, the number of shards in ${sourceOf('shards')}, got ${workers}: every worker needs a shard`,
    )
  }
  if (maxPendingBytes < maxUpdateBytes) {
    const source = sourceOf('max-pending-bytes') ?? sourceOf('max-update-bytes')
    problems.push(
      `${source ?? 'max-pending-bytes'}: expected max-pending-bytes (${maxPendingBytes}) to be at least max-update-bytes (${maxUpdateBytes}), so that the largest update fits in a queue`,
    )
  }
  if (config.demo && config.upstream !== undefined) {
    problems.push(
      `${sourceOf('demo')}: expected it without upstream, which answers the methods of the demo`,
    )
  }
  const types = givenTypes(config)
  if (types.length > addedTypesMax) {
    problems.push(
      `${sourceOf('update-type')}: expected at most ${addedTypesMax} added types with those of update-types-of, got ${types.length}`,
    )
  }
  problems.push(
    ...clusterConfigProblems(config, sourceOf),
    ...(of === 'client' ? [] : certificateProblems(config, sourceOf)),
    ...httpProblems(config, sourceOf),
    ...eventsProblems(config, sourceOf),
  )
}

/** A certificate and its key belong together, and to a listener that has a port. */
function certificateProblems(config: Config, sourceOf: SourceOf): readonly string[] {
  const listeners = [
    { of: 'http', address: config.httpIpAddress, files: [config.httpCert, config.httpCertKey] },
    { of: 'admin', address: config.adminIpAddress, files: [config.adminCert, config.adminCertKey] },
  ]
  return listeners.flatMap(({ of, address, files: [cert, key] }) => {
    const [certName, keyName, placeName] = [`${of}-cert`, `${of}-cert-key`, `${of}-ip-address`]
    if (cert === undefined && key === undefined) return []
    if (key === undefined) return [`${sourceOf(certName)}: expected ${keyName} with it`]
    if (cert === undefined) return [`${sourceOf(keyName)}: expected ${certName} with it`]
    if (!isSocketPath(address)) return []
    return [
      `${sourceOf(certName)}: expected an IP address in ${placeName}, because a Unix socket has no TLS`,
    ]
  })
}

/** Where a secret crosses the network, http is allowed only with `--local`. */
function httpProblems({ local, portal, relayFrom }: Config, sourceOf: SourceOf): readonly string[] {
  if (local) return []
  const problems: string[] = []
  if (portal?.startsWith('http:') === true) {
    problems.push(
      `${sourceOf('portal')}: expected https, because http, over which secrets of links can be read, is allowed only with --local`,
    )
  }
  if (relayFrom.some((origin) => origin.startsWith('http:'))) {
    problems.push(
      `${sourceOf('relay-from')}: expected https, because http is allowed only with --local`,
    )
  }
  return problems
}

function eventsProblems(
  { eventsUrl, eventsSecretFile, local }: Config,
  sourceOf: SourceOf,
): readonly string[] {
  if (eventsUrl === undefined) {
    if (eventsSecretFile === undefined) return []
    return [`${sourceOf('events-secret-file')}: expected events-url, too, which it signs for`]
  }
  const source = sourceOf('events-url')
  const problems: string[] = []
  if (eventsSecretFile === undefined) {
    problems.push(`${source}: expected events-secret-file, too, whose secret signs the events`)
  }
  if (!local && !/^https:/i.test(eventsUrl)) {
    problems.push(`${source}: expected https, because http is allowed only with --local`)
  }
  return problems
}

/**
 * An error message shows this many characters of an option's invalid value. Chosen: enough to recognize the value; a
 * pasted file does not fill the log.
 */
const valueShownMax = 100

/**
 * Returns text for a message: quoted, cut, and without what looks like the password of a URL, what a terminal may act upon and
 * what nobody can see.
 */
export function shown(text: string): string {
  const harmless = text.replace(/\/\/[^/\s]*@/g, '//***@')
  const cut = harmless.length > valueShownMax ? `${harmless.slice(0, valueShownMax)}...` : harmless
  return visibleJson(JSON.stringify(cut))
}

function reasonOf(got: unknown): string {
  if (typeof got === 'string') return got
  if (!(got instanceof Error)) return 'another failure'
  return 'code' in got && typeof got.code === 'string' ? got.code : got.name
}

/**
 * The environment variables that Kubernetes makes for each Service of a namespace, unless enableServiceLinks is false. A Service
 * whose name begins with postbote has them below POSTBOTE, and they are no options, although `postbote-http` and `postbote-admin`
 * make POSTBOTE_HTTP_PORT and POSTBOTE_ADMIN_PORT:
 *
 *     NAME_SERVICE_HOST=10.0.0.11           NAME_PORT=tcp://10.0.0.11:8081
 *     NAME_SERVICE_PORT=8081                NAME_PORT_8081_TCP=tcp://10.0.0.11:8081
 *     NAME_SERVICE_PORT_PRIVATE=8082        NAME_PORT_8081_TCP_PROTO=tcp, ..._PORT=8081, ..._ADDR=10.0.0.11
 *
 * A variable of such a name with a value of another form is no such variable. Pure.
 */
type Form = (value: string) => boolean

const isPort: Form = (value) => /^\d{1,5}$/.test(value)
const isAddress: Form = (value) => isIP(value) !== 0
const isProtocol: Form = (value) => /^(tcp|udp|sctp)$/.test(value)

const isPlace: Form = (value) => {
  const [, host = '', port = ''] = /^(?:tcp|udp|sctp):\/\/(.{1,100}):(\d{1,5})$/.exec(value) ?? []
  return isPort(port) && isAddress(host.replace(/^\[(.*)\]$/, '$1'))
}

/** By how the names end. */
const forms: readonly (readonly [end: RegExp, form: Form])[] = [
  [/_PORT_\d{1,5}_(TCP|UDP|SCTP)$/, isPlace],
  [/_PORT_\d{1,5}_(TCP|UDP|SCTP)_PROTO$/, isProtocol],
  [/_PORT_\d{1,5}_(TCP|UDP|SCTP)_PORT$/, isPort],
  [/_PORT_\d{1,5}_(TCP|UDP|SCTP)_ADDR$/, isAddress],
  [/_SERVICE_HOST$/, isAddress],
  [/_SERVICE_PORT(_[A-Z0-9_]{1,63})?$/, isPort],
  [/_PORT$/, isPlace],
]

/** Returns whether a variable is one that Kubernetes makes. */
export function isServiceLink(name: string, value: string): boolean {
  return forms.some(([end, form]) => end.test(name) && form(value))
}

/**
 * The options with which a reload starts the new workers: the options that were read anew, except those that belong to
 * the primary or must always be the same in all workers.
 */
export interface ReloadedConfig {
  readonly config: Config
  /** The names of options that have changed and take effect only after a restart. */
  readonly needRestart: readonly string[]
}

export function reloadedConfig(running: Config, read: Config): ReloadedConfig {
  const kept: Record<string, unknown> = {}
  const needRestart: string[] = []
  const rows: Readonly<Record<string, OptionRow>> = optionTable
  const [now, then] = [new Map(Object.entries(running)), new Map(Object.entries(read))]
  for (const [field, { name, needsRestart }] of Object.entries(rows)) {
    if (needsRestart === undefined) continue
    kept[field] = now.get(field)
    if (!isDeepStrictEqual(then.get(field), now.get(field))) needRestart.push(name)
  }
  return { config: { ...read, ...kept }, needRestart }
}
