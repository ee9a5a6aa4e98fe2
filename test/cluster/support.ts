/** A real primary with real workers for the tests of this folder, and raw clients for it. */
import { once } from 'node:events'
import { type IncomingHttpHeaders, request } from 'node:http'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { systemClock } from '../../src/kit/clock.ts'
import type { ListenAddress, ListenerKind } from '../../src/http/listener.ts'
import { type Primary, runPrimary } from '../../src/process/primary/primary.ts'
import type { ShardOwner, ShardTable } from '../../src/process/shard-table.ts'
import { botOf, map } from '../support/server/bot-of.ts'
import { memoryEventLog } from '../support/server/memory-event-log.ts'
import type { EndingTest } from '../support/server/server.ts'
import { temporaryDirectory } from '../support/kit/temporary-directory.ts'

/** The bundle, since a worker that loads some 400 files takes three times as long to start. */
export const workerFile = new URL('../test-worker.js', import.meta.url).pathname

export class MemoryShardTable implements ShardTable {
  readonly #owners = new Map<number, ShardOwner>()
  readonly serving = new Set<number>()
  readonly cleared: number[] = []

  ownerWorker(shard: number): number {
    return this.#owners.get(shard)?.worker ?? -1
  }
  owner(shard: number): ShardOwner | undefined {
    return this.#owners.get(shard)
  }
  assign(shard: number, owner: ShardOwner): void {
    this.#owners.set(shard, owner)
    this.serving.delete(shard)
  }
  countHang(): void {
    // Only a test with the table in shared memory needs this.
  }
  noteWorker(): void {
    // Only GET /v1/nodes reads this, in the shared memory of a real server.
  }
  markServing(shard: number): void {
    this.serving.add(shard)
  }
  isServed(shard: number): boolean {
    return this.serving.has(shard)
  }
  allServed(): boolean {
    return this.serving.size === 8
  }
  release({ worker, generation }: ShardOwner): void {
    this.cleared.push(worker)
    for (const shard of map.shardsOf(worker)) {
      if (this.#owners.get(shard)?.generation === generation) this.serving.delete(shard)
    }
  }
}

export interface Cluster {
  readonly primary: Primary
  readonly table: MemoryShardTable
  readonly runDir: string
  port(listener: ListenerKind): number
}

export const silent = { debug: skip, info: skip, warn: skip, error: skip }

export async function startCluster(
  test: EndingTest,
  settings: object = {},
  newSettings: () => object = () => settings,
): Promise<Cluster> {
  const runDir = temporaryDirectory(test)
  const table = new MemoryShardTable()
  const primary = await runPrimary({
    clock: systemClock,
    events: memoryEventLog(),
    log: process.env['POSTBOTE_TEST_LOG'] === undefined ? silent : console,
    listeners: [
      { listener: 'bot', address: { host: '127.0.0.1', port: 0 } },
      { listener: 'private', address: { host: '127.0.0.1', port: 0 } },
      { listener: 'bot', address: { path: join(runDir, 'bot-api.sock') } },
    ],
    workers: 2,
    shards: 8,
    runDir: join(runDir, 'run'),
    workerFile,
    shardTable: table,
    settings,
    newSettings,
  })
  test.after(() => primary.close())
  return {
    primary,
    table,
    runDir,
    port(listener) {
      for (const { listener: kind, address } of primary.addresses) {
        if (kind === listener && 'port' in address) return address.port
      }
      throw new Error(`no ${listener} listener`)
    },
  }
}

export interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

export interface Ask {
  readonly address: ListenAddress | number
  readonly path: string
  readonly method?: string
  readonly body?: Buffer | string
  readonly headers?: Record<string, string>
}

export function ask({ address, path, method = 'GET', body, headers = {} }: Ask): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const target =
      typeof address === 'number'
        ? { host: '127.0.0.1', port: address }
        : 'path' in address
          ? { socketPath: address.path }
          : address
    const sent = request({ ...target, path, method, headers, agent: false }, (answer) => {
      const chunks: Buffer[] = []
      answer.on('data', (chunk: Buffer) => chunks.push(chunk))
      answer.once('error', reject)
      answer.once('end', () =>
        resolve({
          status: answer.statusCode ?? 0,
          headers: answer.headers,
          body: Buffer.concat(chunks).toString(),
        }),
      )
    })
    sent.once('error', reject)
    sent.end(body)
  })
}

export function client(port: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: '127.0.0.1', port, noDelay: true })
    socket.once('connect', () => resolve(socket))
    socket.on('error', reject)
  })
}

/** Returns everything that the server sends until it closes the connection. */
export function readAll(socket: Socket): Promise<string> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = []
    socket.on('data', (chunk: Buffer) => chunks.push(chunk))
    socket.once('close', () => resolve(Buffer.concat(chunks).toString('latin1')))
  })
}

/** Sends the request on a connection that belongs to the other worker. */
export async function viaWorker0(port: number, line: string, headers = ''): Promise<string> {
  const target = line.includes('/v1/') ? `/v1/bots/${botOf(0)}/echo` : `/bot${botOf(0)}:x/echo`
  const socket = await client(port)
  socket.write(`GET ${target} HTTP/1.1\r\nHost: x\r\n\r\n`)
  await once(socket, 'data')
  const answer = readAll(socket)
  socket.write(`${line} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${headers}\r\n`)
  return await answer
}

function skip(): void {
  // The log is silent.
}
