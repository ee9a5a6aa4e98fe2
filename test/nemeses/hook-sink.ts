/**
 * The webhooks of all bots, at `/BOT_ID`. A delivery takes a moment, so that two nodes that deliver to one bot at a time
 * would be seen: updates of one ordering key are delivered one after the other. A node that was frozen while it sent may
 * send the rest beside its successor, so a delivery counts from its last byte.
 */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { wait } from '../support/database.ts'
import { portOf } from '../support/port.ts'
import type { EndingTest } from '../support/server.ts'

const deliveryMs = 3

export interface HookSink {
  url(botId: number): string
}

export interface HookEvents {
  readonly onDelivery: (botId: number, text: string) => void
  /** A delivery to a bot arrived while another one of it was in progress. */
  readonly onOverlap: (botId: number) => void
}

export async function startHookSink(t: EndingTest, events: HookEvents): Promise<HookSink> {
  const inProgress = new Map<number, number>()
  const server = createServer((request, response) => {
    const botId = Number(request.url?.slice(1))
    take(request, response, (text) => {
      const others = inProgress.get(botId) ?? 0
      if (others > 0) events.onOverlap(botId)
      inProgress.set(botId, others + 1)
      response.on('close', () => inProgress.set(botId, (inProgress.get(botId) ?? 1) - 1))
      events.onDelivery(botId, text)
    }).catch(() => response.destroy())
  })
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
