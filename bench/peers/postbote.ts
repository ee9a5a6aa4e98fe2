/**
 * Postbote as its users run it: producers use the streams of postbote/client, and each queue is a bot that polls over its
 * own connection and confirms each page with the next poll.
 */
import { createServer } from 'node:http'
import { PostboteClient } from '../../clients/typescript/postbote-client.ts'
import { LongPolls } from '../long-polls.ts'
import { firstBotId, startServer } from '../server-under-test.ts'
import { freePort } from '../../test/support/kit/port.ts'
import type { CaseContext } from '../contestant.ts'
import type {
  EventSink,
  Peer,
  PeerAddress,
  PeerEvent,
  PeerProducer,
  PeerServer,
  PushedEvent,
} from './peer.ts'

/** With hints, one stream has a connection to each worker, and more of them cost more; without, two for each worker. */
const hintedStreams = 1
const unhintedStreams = 4
/** Nothing reads the queues while pushes are measured. */
const wideQueues = ['--max-pending-updates', '1000000000', '--max-pending-bytes', String(2 ** 40)]
/** Nobody waits for the record of a confirm, which is written within 20 ms and one write. */
const settleMs = 100

type ReceivedUpdate = PeerEvent & { readonly update_id: number }

export const postbote: Peer = {
  lanes: 64,
  batchMax: 500,
  start,
  connect: async (address) => producerOf(address, { streams: hintedStreams }),
  consume,
}

/** Half of the events of a stream are for the other worker. */
export const postboteWithoutHints: Peer = {
  ...postbote,
  connect: async (address) =>
    producerOf(address, { streams: unhintedStreams, nodeUrls: [await urlWithoutGroups()] }),
}

async function start(context: CaseContext, queues: number): Promise<PeerServer> {
  const server = await startServer(context, { flags: wideQueues })
  const bots = await server.registerBots(queues)
  return {
    address: {
      port: server.privatePort,
      botPort: server.botPort,
      key: server.adminKey,
      tokens: bots.map(({ token }) => token),
    },
    cpuUsByProcess: () => ({ server: server.cpuUs() }),
    threadTimes: () => server.threadTimes(),
    residentBytes: () => server.residentBytes(),
    settled: () => new Promise((resolve) => setTimeout(resolve, settleMs)),
    profiled: (work) => server.profiled(work),
    profiles: server.profiles,
  }
}

function producerOf(
  { port, key = '' }: PeerAddress,
  { streams, ...nodes }: { readonly streams: number; readonly nodeUrls?: readonly string[] },
): PeerProducer {
  // No peer recognizes an event that is pushed again, as it would by an idempotency key.
  const url = `http://127.0.0.1:${port}`
  const client = new PostboteClient({ url, key, hasIdempotencyKeys: false, ...nodes })
  const opened = Array.from({ length: streams }, () => client.openStream())
  return {
    push: async (lane, events) => {
      const stream = opened[lane % streams]
      await Promise.all(events.flatMap((each) => stream?.push(...argumentsOf(each)) ?? []))
    },
  }
}

/** Returns the address of a node that names no groups, as an older one does: the client opens its streams without hints. */
async function urlWithoutGroups(): Promise<string> {
  const port = await freePort()
  createServer((_request, response) => response.writeHead(404).end()).listen(port, '127.0.0.1')
  return `http://127.0.0.1:${port}`
}

async function consume(
  { botPort = 0, tokens = [] }: PeerAddress,
  _queues: number,
  sink: EventSink,
): Promise<void> {
  for (const token of tokens) poll(botPort, token, sink)
}

function argumentsOf({ queue, event }: PushedEvent): [number, { message: object }] {
  return [firstBotId + queue, { message: event.message }]
}

function poll(port: number, token: string, sink: EventSink): void {
  void new LongPolls({
    port,
    token,
    received(body) {
      const { result }: { readonly result: readonly ReceivedUpdate[] } = JSON.parse(body.toString())
      for (const update of result) sink.arrived(update)
      sink.confirmed(result.length)
      const last = result.at(-1)
      return last === undefined ? undefined : last.update_id + 1
    },
    failed(error) {
      throw error
    },
  })
}
