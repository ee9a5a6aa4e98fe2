/**
 * The webhooks of all bots, at `/BOT_ID`. A delivery takes a moment, so that two nodes that deliver to one bot at a time
 * would be seen: updates of one ordering key are delivered one after the other. A node that was frozen while it sent may
 * send the rest beside its successor, so a delivery counts from its last byte.
 */
import { once } from 'node:events'
import type { Socket } from 'node:net'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { wait } from '../support/server/database.ts'
import { portOf } from '../support/kit/port.ts'
import type { EndingTest } from '../support/server/server.ts'

const deliveryMs = 3

export interface HookSink {
  url(botId: number): string
}

export interface HookEvents {
  readonly onDelivery: (botId: number, text: string) => void
  /** A delivery to a bot arrived while others of it were in progress. */
  readonly onOverlap: (botId: number, deliveries: readonly Delivery[]) => void
}

/** Times are of the monotonic clock. */
export interface Delivery {
  readonly updateId: number
  readonly headersAtMs: number
  readonly lastByteAtMs: number
  readonly connectionAgeMs: number
}

export async function startHookSink(t: EndingTest, events: HookEvents): Promise<HookSink> {
  const inProgress = new Map<number, Set<Delivery>>()
  const connectedAtMs = new WeakMap<Socket, number>()
  const server = createServer((request, response) => {
    const headersAtMs = performance.now()
    const botId = Number(request.url?.slice(1))
    take(request, response, (text) => {
      const lastByteAtMs = performance.now()
      const connectionAgeMs = lastByteAtMs - (connectedAtMs.get(request.socket) ?? 0)
      const updateId: number = JSON.parse(text).update_id
      const delivery = { updateId, headersAtMs, lastByteAtMs, connectionAgeMs }
      const others = inProgress.get(botId) ?? new Set()
      inProgress.set(botId, others.add(delivery))
      if (others.size > 1) events.onOverlap(botId, [...others])
      response.on('close', () => others.delete(delivery))
      events.onDelivery(botId, text)
    }).catch(() => response.destroy())
  })
  server.on('connection', (socket) => void connectedAtMs.set(socket, performance.now()))
  server.keepAliveTimeout = 120_000
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(async () => {
    server.close()
    server.closeAllConnections()
  })
  const port = portOf(server)
  return { url: (botId) => `http://127.0.0.1:${port}/${botId}` }
}

async function take(
  request: IncomingMessage,
  response: ServerResponse,
  receive: (text: string) => void,
): Promise<void> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk)
  receive(Buffer.concat(chunks).toString())
  await wait(deliveryMs)
  response.end()
}
