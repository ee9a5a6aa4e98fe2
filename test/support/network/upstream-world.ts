/** A server with an upstream server, for tests of `--upstream`. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { ClientRequest, IncomingMessage } from 'node:http'
import { ShardMap } from '../../../src/process/shard-map.ts'
import { type FakeUpstream, startUpstream } from './fake-upstream.ts'
import { type EndingTest, type RegisteredBot, type Server, startServer } from '../server/server.ts'

const map = new ShardMap({ shards: 8, workers: 2 })

export interface UpstreamWorld {
  readonly upstream: FakeUpstream
  readonly server: Server
  /** One bot of each worker. */
  readonly bots: readonly [RegisteredBot, RegisteredBot]
}

/** Starts an upstream server and a server of two workers in front of it. */
export async function openUpstreamWorld(t: EndingTest): Promise<UpstreamWorld> {
  const upstream = await startUpstream(t)
  const server = await startServer(t, {
    workers: 2,
    flags: ['--local', '--shards=8', '--log-level=trace', `--upstream=${upstream.url}/api/`],
  })
  return { upstream, server, bots: [await registerAt(server, 0), await registerAt(server, 1)] }
}

let lastBotId = 1_000

/** Registers a bot that this worker owns. */
export function registerAt(server: Server, worker: number): Promise<RegisteredBot> {
  do lastBotId++
  while (map.workerOfBot(lastBotId) !== worker)
  return server.register(lastBotId)
}

/** Sends a request and reads its response. */
export async function callOf(
  outgoing: ClientRequest,
  body?: Buffer | string,
): Promise<{ status: number; text: string; headers: IncomingMessage['headers'] }> {
  outgoing.end(body)
  const [response]: IncomingMessage[] = await once(outgoing, 'response')
  assert(response !== undefined)
  let text = ''
  response.setEncoding('utf8')
  for await (const chunk of response) text += String(chunk)
  return { status: response.statusCode ?? 0, text, headers: response.headers }
}
