/**
 * Postbote as its users run it: producers use the streams of postbote/client, and each queue is a bot that polls over its
 * own connection and confirms each page with the next poll.
 */
import { connect, type Socket } from 'node:net'
import { PostboteClient } from '../../src/client/postbote-client.ts'
import { firstBotId, startServer } from '../server-under-test.ts'
import type { EventSink, Peer, PeerEvent, PushedEvent } from './peer.ts'

/** Two for each of two workers. */
const streams = 4
/** Nothing reads the queues while pushes are measured. */
const wideQueues = ['--max-pending-updates', '1000000000', '--max-pending-bytes', String(2 ** 40)]
/** Nobody waits for the record of a confirm, which is written within 20 ms and one write. */
const settleMs = 100
const headEnd = Buffer.from('\r\n\r\n')
const contentLength = /\r\ncontent-length: *(\d+)/i

export const postbote: Peer = {
  lanes: 64,
  batchMax: 500,
  async start(context, queues) {
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
      residentBytes: () => server.residentBytes(),
      settled: () => new Promise((resolve) => setTimeout(resolve, settleMs)),
    }
  },
  async connect({ port, key = '' }) {
    // No peer recognizes an event that is pushed again, as it would by an idempotency key.
    const url = `http://127.0.0.1:${port}`
    const client = new PostboteClient({ url, key, hasIdempotencyKeys: false })
    const opened = Array.from({ length: streams }, () => client.openStream())
    return {
      push: async (lane, events) => {
        const stream = opened[lane % streams]
        await Promise.all(events.flatMap((each) => stream?.push(...argumentsOf(each)) ?? []))
      },
    }
  },
  async consume({ botPort = 0, tokens = [] }, _queues, sink) {
    for (const token of tokens) void new PollingQueue(botPort, token, sink)
  },
}

function argumentsOf({ queue, event }: PushedEvent): [number, { message: object }] {
  return [firstBotId + queue, { message: event.message }]
}

class PollingQueue {
  readonly #token: string
  readonly #socket: Socket
  readonly #sink: EventSink
  #rest: Buffer | undefined
  #offset = 0

  constructor(port: number, token: string, sink: EventSink) {
    this.#token = token
    this.#sink = sink
    this.#socket = connect({ host: '127.0.0.1', port, noDelay: true })
    this.#socket.on('data', (bytes) => this.#read(bytes))
    this.#poll()
  }

  #poll(): void {
    this.#socket.write(
      `GET /bot${this.#token}/getUpdates?offset=${this.#offset}&timeout=50 HTTP/1.1\r\n` +
        'Host: localhost\r\nAccept: */*\r\nConnection: keep-alive\r\n\r\n',
    )
  }

  #read(bytes: Buffer): void {
    const all = this.#rest === undefined ? bytes : Buffer.concat([this.#rest, bytes])
    const end = all.indexOf(headEnd)
    const head = end < 0 ? '' : all.toString('latin1', 0, end)
    const bodyBytes = Number(contentLength.exec(head)?.[1] ?? Number.POSITIVE_INFINITY)
    if (all.length < end + headEnd.length + bodyBytes) {
      this.#rest = all
      return
    }
    this.#rest = undefined
    const body = all.toString('utf8', end + headEnd.length)
    if (!head.startsWith('HTTP/1.1 200')) throw new Error(`a poll got ${body}`)
    const { result }: { readonly result: readonly (PeerEvent & { readonly update_id: number })[] } =
      JSON.parse(body)
    for (const update of result) {
      this.#sink.arrived(update)
      this.#offset = update.update_id + 1
    }
    this.#poll()
    this.#sink.confirmed(result.length)
  }
}
