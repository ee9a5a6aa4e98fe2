/**
 * Yardstick of the delay from push to poll: bare node:http in one process that receives NDJSON pairs and passes them on
 * to waiting long polls immediately. It keeps everything in memory, checks nothing and waits for no disk.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { serveHelper } from './serve-helper.ts'

interface Bot {
  waiting: ServerResponse | undefined
  pending: string[]
}

const bots = new Map<number, Bot>()
let lastId = 5_000_000

function botOf(botId: number): Bot {
  const known = bots.get(botId)
  if (known !== undefined) return known
  const bot = { waiting: undefined, pending: [] }
  bots.set(botId, bot)
  return bot
}

function takePush(request: IncomingMessage, response: ServerResponse): void {
  let rest = ''
  response.writeHead(200, { 'Content-Type': 'application/x-ndjson' })
  request.setEncoding('utf8')
  request.on('data', (text: string) => {
    const lines = (rest + text).split('\n')
    const whole = (lines.length - 1) & ~1
    rest = lines.slice(whole).join('\n')
    let answers = ''
    for (let index = 0; index < whole; index += 2) {
      const { bot_id: botId }: { bot_id: number } = JSON.parse(lines[index] ?? '')
      lastId += 1
      answers += `{"update_id":${lastId}}\n`
      deliver(botOf(botId), `{"update_id":${lastId},${(lines[index + 1] ?? '').slice(1)}`)
    }
    if (answers !== '') response.write(answers)
  })
  request.on('end', () => response.end())
}

function deliver(bot: Bot, update: string): void {
  bot.pending.push(update)
  if (bot.waiting !== undefined) answer(bot, bot.waiting)
}

function answer(bot: Bot, response: ServerResponse): void {
  const body = `{"ok":true,"result":[${bot.pending.join(',')}]}`
  bot.pending = []
  bot.waiting = undefined
  response.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': body.length })
  response.end(body)
}

serveHelper((_question: object) => {
  const server = createServer((request, response) => {
    if (request.method === 'POST') return takePush(request, response)
    request.resume()
    const bot = botOf(Number(/^\/bot(\d+):/.exec(request.url ?? '')?.[1]))
    if (bot.pending.length > 0) answer(bot, response)
    else bot.waiting = response
  })
  return new Promise<number>((resolve, reject) => {
    server.on('error', reject)
    server.listen(0, '127.0.0.1', () => {
      // oxlint-disable-next-line no-unsafe-type-assertion -- a TCP server's address
      resolve((server.address() as AddressInfo).port)
    })
  })
})
