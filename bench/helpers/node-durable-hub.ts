/**
 * Yardstick of a synced delay from push to poll: bare node:http with bare leveldown in one process. It receives NDJSON
 * pairs, stores each update with the record of its queue, and passes it on to the waiting long poll when it is synced. The
 * next poll confirms it: the update is deleted with the next group.
 *
 * It syncs as often as the server: each bot belongs to one of eight databases, and what arrives while a group of a database
 * is written forms its next one. Nothing is checked, and one process does it all.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import leveldown from 'leveldown'
import { kinds } from '../../src/shard/kinds.ts'
import { encodeUpdate } from '../../src/shard/records/record.ts'
import { pushPuts } from '../push-puts.ts'
import { serveHelper } from './serve-helper.ts'

export interface DurableHubQuestion {
  readonly directory: string
}

type Change = ReturnType<typeof pushPuts>[number] | { readonly type: 'del'; readonly key: Buffer }

const databases = 8

class Groups {
  readonly #database: ReturnType<typeof leveldown>
  #changes: Change[] = []
  #synced: (() => void)[] = []
  #isWriting = false

  constructor(directory: string) {
    this.#database = leveldown(directory)
  }

  open(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#database.open({ createIfMissing: true }, (error) => (error ? reject(error) : resolve()))
    })
  }

  /** Without `synced`, the changes are written with the next group. */
  add(changes: readonly Change[], synced?: () => void): void {
    if (this.#synced.length === 0 && synced !== undefined && !this.#isWriting) {
      setImmediate(() => this.#write())
    }
    this.#changes.push(...changes)
    if (synced !== undefined) this.#synced.push(synced)
  }

  #write(): void {
    const changes = this.#changes
    const synced = this.#synced
    this.#changes = []
    this.#synced = []
    this.#isWriting = true
    this.#database.batch(changes, { sync: true }, (error) => {
      if (error) throw error
      this.#isWriting = false
      for (const each of synced) each()
      if (this.#synced.length > 0) this.#write()
    })
  }
}

interface Bot {
  readonly queue: number
  readonly groups: Groups
  nextId: number
  waiting: ServerResponse | undefined
  pending: string[]
  /** Updates that the next poll confirms. */
  sentIds: number[]
}

const bots = new Map<number, Bot>()
const allGroups: Groups[] = []

function botOf(botId: number): Bot {
  const known = bots.get(botId)
  if (known !== undefined) return known
  const groups = allGroups[botId % databases]
  if (groups === undefined) throw new Error('expected the databases to be open')
  const bot = {
    queue: botId,
    groups,
    nextId: 5_000_000,
    waiting: undefined,
    pending: [],
    sentIds: [],
  }
  bots.set(botId, bot)
  return bot
}

function takePush(request: IncomingMessage, response: ServerResponse): void {
  let rest = ''
  let unanswered = 0
  let isEnded = false
  response.writeHead(200, { 'Content-Type': 'application/x-ndjson' })
  request.setEncoding('utf8')
  request.on('data', (text: string) => {
    const lines = (rest + text).split('\n')
    const whole = (lines.length - 1) & ~1
    rest = lines.slice(whole).join('\n')
    for (let index = 0; index < whole; index += 2) {
      const { bot_id: botId }: { bot_id: number } = JSON.parse(lines[index] ?? '')
      unanswered += 1
      push(botOf(botId), (lines[index + 1] ?? '').slice(1, -1), (updateId) => {
        response.write(`{"update_id":${updateId}}\n`)
        unanswered -= 1
        if (isEnded && unanswered === 0) response.end()
      })
    }
  })
  request.on('end', () => {
    isEnded = true
    if (unanswered === 0) response.end()
  })
}

function push(bot: Bot, text: string, done: (updateId: number) => void): void {
  const { queue } = bot
  const updateId = bot.nextId++
  const value = encodeUpdate(kinds.update.key(queue, updateId), {
    typeNumber: 0,
    acceptedAtS: 1_760_000_000,
    expiresAtS: 1_760_086_400,
    orderingKey: '',
    text: Buffer.from(text),
  })
  bot.groups.add(pushPuts({ queue, updateId, value }), () => {
    bot.pending.push(`{"update_id":${updateId},${text}}`)
    bot.sentIds.push(updateId)
    if (bot.waiting !== undefined) answer(bot, bot.waiting)
    done(updateId)
  })
}

function answer(bot: Bot, response: ServerResponse): void {
  const body = `{"ok":true,"result":[${bot.pending.join(',')}]}`
  bot.pending = []
  bot.waiting = undefined
  const length = { 'Content-Length': Buffer.byteLength(body) }
  response.writeHead(200, { 'Content-Type': 'application/json', ...length })
  response.end(body)
}

function poll(bot: Bot, response: ServerResponse): void {
  if (bot.pending.length > 0) {
    answer(bot, response)
    return
  }
  bot.waiting = response
  const { queue, sentIds } = bot
  if (sentIds.length === 0) return
  bot.sentIds = []
  bot.groups.add(
    sentIds.map((updateId) => ({ type: 'del', key: kinds.update.key(queue, updateId) })),
  )
}

serveHelper(async ({ directory }: DurableHubQuestion) => {
  for (let nth = 0; nth < databases; nth++) {
    const groups = new Groups(join(directory, String(nth)))
    await groups.open()
    allGroups.push(groups)
  }
  const server = createServer((request, response) => {
    if (request.method === 'POST') {
      takePush(request, response)
      return
    }
    request.resume()
    poll(botOf(Number(/^\/bot(\d+):/.exec(request.url ?? '')?.[1])), response)
  })
  return new Promise<number>((resolve, reject) => {
    server.on('error', reject)
    server.listen(0, '127.0.0.1', () => {
      // oxlint-disable-next-line no-unsafe-type-assertion -- a TCP server's address
      resolve((server.address() as AddressInfo).port)
    })
  })
})
