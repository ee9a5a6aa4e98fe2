/** The rules about the options of several servers with one database, each of which concerns more than one option. */
import { environmentName, optionTable } from './config-options.ts'
import { type HostPort, portMax } from './config-values.ts'

const placeFields = ['clusterListen', 'clusterAdvertise'] as const
const otherFields = ['clusterAdvertise', 'clusterKeyFile'] as const

/** The part of `Config` that the rules are about. */
export interface ClusterConfig {
  /** Only whether there is one matters. */
  readonly databases: readonly unknown[]
  readonly clusterListen: HostPort | undefined
  readonly clusterAdvertise: HostPort | undefined
  readonly clusterKeyFile: string | undefined
}

/** Returns how an option was given, such as `--cluster-listen` or `POSTBOTE_CLUSTER_LISTEN`; undefined if it was not. */
export type SourceOf = (name: string) => string | undefined

/** Returns what is wrong with the options together, each problem as a line. */
export function clusterConfigProblems(
  config: ClusterConfig,
  sourceOf: SourceOf,
): readonly string[] {
  const sourceOfField = (field: keyof ClusterConfig): string => {
    const { name } = optionTable[field]
    return sourceOf(name) ?? name
  }
  const { clusterListen, clusterAdvertise } = config
  if (clusterListen === undefined) {
    return otherFields
      .filter((field) => config[field] !== undefined)
      .map((field) => `${sourceOfField(field)}: expected cluster-listen, which it belongs to`)
  }
  const listenSource = sourceOfField('clusterListen')
  const problems: string[] = []
  if (config.databases.length === 0) {
    problems.push(
      `${listenSource}: expected database, because servers share bots only by a database`,
    )
  }
  if (isWildcard(clusterListen) && clusterAdvertise === undefined) {
    problems.push(
      `${listenSource}: expected cluster-advertise with it, because other servers cannot connect to ${clusterListen.host}`,
    )
  }
  if (clusterAdvertise !== undefined && isWildcard(clusterAdvertise)) {
    const source = sourceOfField('clusterAdvertise')
    problems.push(`${source}: expected an address to connect to, got ${clusterAdvertise.host}`)
  }
  if (config.clusterKeyFile === undefined) {
    problems.push(`${listenSource}: expected cluster-key-file with it`)
  }
  return problems
}

/**
 * Returns what is wrong with the ports if there are this many workers: each has one, from that of the option on.
 * The number of workers is known only when the shards are.
 */
export function clusterPortProblems(config: ClusterConfig, workers: number): readonly string[] {
  return placeFields.flatMap((field) => {
    const place = config[field]
    const lastMax = portMax - workers + 1
    if (place === undefined || place.port <= lastMax) return []
    const { name } = optionTable[field]
    return `--${name} (${environmentName(name)}): expected a port of at most ${lastMax}, got ${place.port}: each of the ${workers} workers needs one, from this one on`
  })
}

/** Whether the host stands for every address of a machine. A listener takes it, and nobody can connect to it. */
function isWildcard({ host }: HostPort): boolean {
  const { hostname } = new URL(`http://${host.includes(':') ? `[${host}]` : host}`)
  return ['0.0.0.0', '[::]', '[::ffff:0:0]'].includes(hostname)
}
