/** A Redis that syncs its log before each response. */
import { mkdtemp } from 'node:fs/promises'
import { join } from 'node:path'
import { freePort } from '../../test/support/kit/port.ts'
import type { CaseContext } from '../contestant.ts'
import { PeerProcess } from './peer-process.ts'
import type { PeerAddress } from './peer.ts'
import { peerModule } from './peer-module.ts'

/** The part of ioredis that the peers use. */
export interface Redis {
  pipeline(commands?: readonly (readonly (string | number)[])[]): Pipeline
  call(command: string, ...args: readonly (string | number)[]): Promise<unknown>
}

export interface Pipeline {
  call(command: string, ...args: readonly (string | number)[]): Pipeline
  exec(): Promise<readonly (readonly [error: Error | null, value: unknown])[] | null>
}

export interface RedisPlace {
  readonly host: string
  readonly port: number
  readonly maxRetriesPerRequest: null
}

interface RedisModule {
  readonly Redis: new (options: RedisPlace) => Redis
}

export async function startRedis(context: CaseContext): Promise<PeerProcess> {
  const directory = await mkdtemp(join(context.directory, 'redis-'))
  const port = await freePort()
  const settings = {
    port,
    bind: '127.0.0.1',
    dir: directory,
    appendonly: 'yes',
    appendfsync: 'always',
    save: '',
    // The rewrite of a long log is not part of the measured cost.
    'auto-aof-rewrite-percentage': 0,
    maxclients: 5_000,
  }
  const args = Object.entries(settings).flatMap(([name, value]) => [`--${name}`, `${value}`])
  return PeerProcess.start(context, { file: 'redis-server', args, port, cwd: directory })
}

export function redisPlace({ port }: PeerAddress): RedisPlace {
  return { host: '127.0.0.1', port, maxRetriesPerRequest: null }
}

export function redisClient(address: PeerAddress): Redis {
  const { Redis: Client } = peerModule<RedisModule>('ioredis')
  return new Client(redisPlace(address))
}
