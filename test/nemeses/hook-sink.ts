/**
 * The webhooks of all bots, at `/BOT_ID`. A delivery takes a moment, so that two nodes that deliver to one bot at a time
 * would be seen: updates of one ordering key are delivered one after the other.
 */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { wait } from '../support/database.ts'
import { portOf } from '../support/port.ts'
import type { EndingTest } from '../support/server.ts'

const deliveryMs = 3

export interface HookSink {
  url(botId: number): string
  /** Deliveries of a bot that began while another one of it was in progress. */
  readonly overlaps: number
}

/** @param receive - called with the text of each delivery */
export async function startHookSink(
  t: EndingTest,
  receive: (botId: number, text: string) => void,
): Promise<HookSink> {
  const inProgress = new Map<number, number>()
  const sink = { overlaps: 0 }
  const server = createServer((request, response) => {
    const botId = Number(request.url?.slice(1))
    const others = inProgress.get(botId) ?? 0
    if (others > 0) sink.overlaps++
    inProgress.set(botId, others + 1)
    response.on('close', () => inProgress.set(botId, (inProgress.get(botId) ?? 1) - 1))
    take(request, response, (text) => receive(botId, text)).catch(() => response.destroy())
  })
  server.keepAliveTimeout = 120_000
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(async () => {
    server.close()
    server.closeAllConnections()
  })
  const port = portOf(server)
  return Object.assign(sink, { url: (botId: number) => `http://127.0.0.1:${port}/${botId}` })
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
