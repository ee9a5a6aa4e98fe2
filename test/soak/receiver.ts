/**
 * The webhook of every bot of a soak run that has one: `POST /BOT_ID`. It takes most deliveries immediately. Some are
 * taken late, some get an error, some get no response, and a few are refused permanently.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { nowMs } from './ledger.ts'
import { nameOf, type NamedUpdate } from './named-update.ts'
import { pause, SoakProcess } from './soak-process.ts'

const soak = new SoakProcess()
const { task, ledger } = soak
const luck = soak.luck('receiver')

const server = createServer((incoming, response) => {
  receive(incoming, response).catch(() => response.destroy())
})

async function receive(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
  const chunks: Buffer[] = []
  for await (const chunk of incoming) chunks.push(chunk)
  const update: NamedUpdate & { update_id: number } = JSON.parse(Buffer.concat(chunks).toString())
  // Each attempt is drawn anew, so that no update fails forever.
  const fate = luck.next()
  const isTaken = fate >= 0.05
  ledger.add({
    kind: 'received',
    bot: Number(incoming.url?.slice(1)),
    id: update.update_id,
    ...nameOf(update),
    via: 'webhook',
    isTaken,
    atMs: nowMs(),
  })
  if (fate < 0.002) response.setHeader('webhook-delivery', 'abort-message')
  if (fate > 0.97) await pause(luck.int(5, 500))
  if (fate >= 0.03 && fate < 0.05) return void incoming.socket.destroy()
  response.statusCode = isTaken ? 200 : 500
  response.end()
}

server.listen(task.receiverPort, '127.0.0.1')
await new Promise((resolve) => server.once('listening', resolve))
await soak.run([untilStopped()])

async function untilStopped(): Promise<void> {
  while (!soak.isStopping) await pause(100)
}
