/** The peers in the order in which they run, ours first, and what each needs to be installed. */
import { programDirectory } from '../../test/support/server/postgres.ts'
import { bullmq } from './bullmq.ts'
import { graphileWorker } from './graphile-worker.ts'
import { natsJetStream } from './nats-jetstream.ts'
import type { Peer } from './peer.ts'
import { isPeerModuleInstalled } from './peer-module.ts'
import { isProgramInstalled } from './peer-process.ts'
import { postbote, postboteWithoutHints } from './postbote.ts'
import { postgresTable } from './postgres-table.ts'
import { rabbitmq, rabbitmqServer } from './rabbitmq.ts'
import { redisStreams } from './redis-streams.ts'

const peers = {
  postbote,
  'postbote, without hints': postboteWithoutHints,
  'Redis Streams': redisStreams,
  'PostgreSQL table': postgresTable,
  'NATS JetStream': natsJetStream,
  RabbitMQ: rabbitmq,
  BullMQ: bullmq,
  'graphile-worker': graphileWorker,
} as const satisfies Readonly<Record<string, Peer>>

export type PeerName = keyof typeof peers

// oxlint-disable-next-line no-unsafe-type-assertion -- the keys of a literal
export const peerNames = Object.keys(peers) as readonly PeerName[]

export function peerNamed(name: PeerName): Peer {
  return peers[name]
}

/** Debian's programs of PostgreSQL are not on the path. */
const postgresProgram = `${programDirectory() ?? ''}/postgres`

interface Need {
  readonly program: string
  readonly modules: readonly string[]
}

const needs: Readonly<Partial<Record<PeerName, Need>>> = {
  'Redis Streams': { program: 'redis-server', modules: ['ioredis'] },
  'PostgreSQL table': { program: postgresProgram, modules: [] },
  'NATS JetStream': {
    program: 'nats-server',
    modules: ['@nats-io/transport-node', '@nats-io/jetstream'],
  },
  RabbitMQ: { program: rabbitmqServer, modules: ['amqplib'] },
  BullMQ: { program: 'redis-server', modules: ['ioredis', 'bullmq'] },
  'graphile-worker': { program: postgresProgram, modules: ['graphile-worker'] },
}

/** What a peer lacks on this machine; undefined if it can run. */
export function missingFor(name: PeerName): string | undefined {
  const { program, modules } = needs[name] ?? {}
  if (program !== undefined && !isProgramInstalled(program)) return program
  return modules?.find((module) => !isPeerModuleInstalled(module))
}
