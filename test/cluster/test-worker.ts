/** A small application in a real worker: the method in the path decides what it does. */
import { createHash } from 'node:crypto'
import { appendFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { join } from 'node:path'
import { systemClock } from '../../src/kit/clock.ts'
import { requestOrigin } from '../../src/http/connection-origin.ts'
import type { ListenerKind } from '../../src/http/listener.ts'
import type { Peers } from '../../src/links/forward/peers.ts'
import { callTable } from '../../src/modules/api-operations.ts'
import { SharedMemory } from '../../src/process/shared-memory/shared-memory.ts'
import { ShardMap } from '../../src/process/shard-map.ts'
import type { WorkerStart } from '../../src/process/channel/worker-control.ts'
import { runWorker, type Ways, type WorkerApp } from '../../src/worker/worker.ts'
import { ownerView } from '../support/network/owner-view.ts'

interface Settings {
  readonly failStart?: string
  readonly failOpen?: string
  readonly slowStartMs?: number
  readonly hangingWorker?: number
  /** The shared memory in which hangs of workers are counted; without it they are not counted. */
  readonly memoryFile?: string
}

interface Call {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly url: URL
}

const hanging = new Set<ServerResponse>()
let hangsClosed = 0
let hasLeft = false
let current: WorkerStart | undefined
let peersOfWorker: Peers | undefined

const methods: Record<string, (call: Call) => void> = {
  echo: ({ request, response, url }) => {
    const hash = createHash('sha256')
    let bytes = 0
    request.on('data', (chunk: Buffer) => {
      bytes += chunk.length
      hash.update(chunk)
    })
    request.once('end', () => {
      answer(response, {
        pid: process.pid,
        worker: current?.worker,
        generation: current?.generation,
        path: url.pathname,
        bytes,
        sha256: hash.digest('hex'),
        origin: requestOrigin(request),
        headers: request.headers,
        threads: process.env['UV_THREADPOOL_SIZE'],
      })
    })
  },
  hang: ({ response }) => {
    hanging.add(response)
    response.once('close', () => {
      if (hanging.delete(response)) hangsClosed++
    })
  },
  hangs: ({ response }) => answer(response, { open: hanging.size, closed: hangsClosed }),
  slow: ({ response, url }) => {
    setTimeout(() => answer(response, { at: url.searchParams.get('at') }), 30)
  },
  large: ({ response, url }) => {
    const bytes = Number(url.searchParams.get('bytes'))
    response.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': bytes })
    for (let left = bytes; left > 0; left -= 65_536) {
      response.write(Buffer.alloc(Math.min(left, 65_536), 0x61))
    }
    response.end()
  },
  // Dies before it responds: always, or only the first time.
  die: ({ response, url }) => {
    const once = url.searchParams.get('once')
    if (once !== null && existsSync(once)) {
      answer(response, { pid: process.pid, generation: current?.generation })
      return
    }
    if (once !== null) writeFileSync(once, '')
    process.kill(process.pid, 'SIGKILL')
  },
  // Never returns; `calls` is a file that gets a line each time.
  spin: ({ url }) => {
    appendFileSync(url.searchParams.get('calls') ?? '', 'called\n')
    for (;;);
  },
  // A push does the same, and a stream with a shard says where it arrived.
  updates(call) {
    const { searchParams } = call.url
    const kind = searchParams.has('shard') ? 'echo' : searchParams.has('calls') ? 'spin' : 'die'
    methods[kind]?.(call)
  },
  half: ({ response }) => {
    response.writeHead(200, { 'Content-Length': 1_000 })
    response.write('a'.repeat(500), () => process.kill(process.pid, 'SIGKILL'))
  },
  // Passes its request through a stream to the other worker's `lines`, like an NDJSON front.
  front: ({ request, response, url }) => {
    const stream = peersOfWorker?.openStream({
      place: () => Number(url.searchParams.get('to')),
      owner: ownerView(),
      feed: { isRepeat: false },
      path: '/v1/lines',
      clientAddress: requestOrigin(request)?.clientAddress ?? '',
      headers: { 'x-test': '1' },
    })
    request.on('data', (chunk: Buffer) => stream?.write(chunk))
    request.once('end', () => stream?.end())
    stream?.response.then(
      ({ body }) => body.pipe(response.writeHead(200)),
      (error: Error) => answer(response, { error: error.message }),
    )
  },
  // Responds to each line of the request immediately with its length.
  lines: ({ request, response }) => {
    response.writeHead(200)
    request.on('data', (chunk: Buffer) => response.write(`${chunk.length}\n`))
    request.once('end', () => response.end('end\n'))
  },
}

function answer(response: ServerResponse, value: unknown): void {
  const body = JSON.stringify(value)
  response.writeHead(200, {
    'Content-Type': 'application/json',
    'Content-Length': Buffer.byteLength(body),
  })
  response.end(body)
}

async function prepare(workerStart: WorkerStart, { peers }: Ways): Promise<WorkerApp> {
  current = workerStart
  peersOfWorker = peers
  const settings: Settings = Object(workerStart.settings)
  if (settings.failStart !== undefined) throw new Error(settings.failStart)
  if (settings.slowStartMs !== undefined) {
    await new Promise((resolve) => setTimeout(resolve, settings.slowStartMs))
  }
  const generationFile = (worker: number): string =>
    join(workerStart.runDir, `generation-${worker}`)
  const { memoryFile } = settings
  const memory = memoryFile === undefined ? undefined : SharedMemory.attach(memoryFile)
  const map = new ShardMap({ shards: workerStart.shardCount, workers: workerStart.workers })
  const serve =
    (kind: ListenerKind) =>
    (request: IncomingMessage, response: ServerResponse): void => {
      const url = new URL(request.url ?? '/', 'http://test')
      const [, botId = '0', method = ''] =
        /^\/(?:(?:bot|v1\/bots\/)(\d+)(?::x|%3Ax)?|v1)\/(\w+)/.exec(url.pathname) ?? []
      const owner = botId === '0' ? workerStart.worker : map.workerOfBot(Number(botId))
      const self = workerStart.worker
      if (owner !== self || hasLeft) {
        const generation = (): number => Number(readFileSync(generationFile(owner), 'utf8'))
        const hangs = (): number => memory?.shardTable.hangs(owner) ?? 0
        const place = (): number => owner
        const to = {
          self,
          place,
          owner: ownerView(),
          shard: undefined,
          kind,
          call: callTable.madeBy(request),
          generation,
          hangs,
        }
        peers.forward(request, response, to)
        return
      }
      ;(methods[method] ?? methods['echo'])?.({ request, response, url })
    }
  return {
    handlers: { bot: serve('bot'), private: serve('private') },
    open() {
      if (settings.failOpen !== undefined) throw new Error(settings.failOpen)
      writeFileSync(generationFile(workerStart.worker), String(workerStart.generation))
      hasLeft = false
      return Promise.resolve(workerStart.shards)
    },
    openShard: nothing,
    leaveShard: nothing,
    dropShard: nothing,
    settle: nothing,
    leave() {
      hasLeft = true
      answerHanging()
      if (settings.hangingWorker === workerStart.worker) process.kill(process.pid, 'SIGSTOP')
      return nothing()
    },
    finish: nothing,
    drain() {
      answerHanging()
      return Promise.resolve()
    },
    close: nothing,
  }
}

runWorker({
  clock: systemClock,
  log: { debug: skip, info: skip, warn: skip, error: skip },
  prepare,
})

function answerHanging(): void {
  for (const response of hanging) answer(response, { drained: true })
  hanging.clear()
}

function nothing(): Promise<void> {
  return Promise.resolve()
}

function skip(): void {
  // The tests check responses, and not logs.
}
