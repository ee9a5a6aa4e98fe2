/** The peers in the order in which they run, ours first, and what each needs to be installed. */
import type { Peer } from './peer.ts'
import { isPeerModuleInstalled } from './peer-module.ts'
import { isProgramInstalled } from './peer-process.ts'
import { postbote } from './postbote.ts'
import { redisStreams } from './redis-streams.ts'

export const peers = {
  postbote,
  'Redis Streams': redisStreams,
} as const satisfies Readonly<Record<string, Peer>>

export type PeerName = keyof typeof peers

// oxlint-disable-next-line no-unsafe-type-assertion -- the keys of a literal
export const peerNames = Object.keys(peers) as readonly PeerName[]

interface Need {
  readonly program: string
  readonly versionFlag?: string
  readonly modules: readonly string[]
}

const needs: Readonly<Partial<Record<PeerName, Need>>> = {
  'Redis Streams': { program: 'redis-server', modules: ['ioredis'] },
}

/** What a peer lacks on this machine; undefined if it can run. */
export function missingFor(name: PeerName): string | undefined {
  const need = needs[name]
  if (need === undefined) return undefined
  const { program, versionFlag, modules } = need
  if (!isProgramInstalled(program, versionFlag)) return program
  return modules.find((module) => !isPeerModuleInstalled(module))
}
