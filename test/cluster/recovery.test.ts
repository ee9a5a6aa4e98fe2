/** What is served again after kill -9: nothing durable is lost. replaced-worker.test.ts tests who notices. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { Agent } from 'node:http'
import { fileURLToPath } from 'node:url'
import { test } from 'node:test'
import { isDeepStrictEqual } from 'node:util'
import { lockedExitCode } from '../../src/cli/commands/run-command.ts'
import { assertIdsGoOn } from '../support/producers/assert-ids-go-on.ts'
import { onlyWithAll } from '../support/kit/drawn-runs.ts'
import { isRunning } from '../support/kit/is-running.ts'
import { type RegisteredBot, type Server, startServer } from '../support/server/server.ts'
import { startSink, type WebhookSink } from '../support/webhook/webhook-sink.ts'
import { botOf } from '../support/server/bot-of.ts'
import { getMe } from '../support/bots/get-me.ts'
import { servingLines } from '../support/server/serving-lines.ts'
import { until } from '../support/kit/until.ts'

/** A server with a bot that polls and one with webhooks, both with updates pending in both namespaces. */
class Filled {
  readonly sink: WebhookSink
  readonly poller: RegisteredBot
  readonly receiver: RegisteredBot
  readonly pushed: number[] = []
  readonly before: Record<string, unknown>[] = []
  #isAccepting = false

  constructor(parts: Pick<Filled, 'poller' | 'receiver'> & { readonly sink: WebhookSink }) {
    this.sink = parts.sink
    this.poller = parts.poller
    this.receiver = parts.receiver
  }

  async #info(server: Server): Promise<Record<string, unknown>[]> {
    const infos: Record<string, unknown>[] = []
    for (const { token } of [this.poller, this.receiver]) {
      for (const method of ['getWebhookInfo', 'test/getWebhookInfo']) {
        const { body } = await server.call(token, method)
        const { last_error_date: _date, last_error_message: _message, ...lasting } = body.result
        infos.push(lasting)
      }
    }
    return infos
  }

  async fill(server: Server): Promise<void> {
    const { poller, receiver, sink } = this
    for (const [method, allowed] of [
      ['getUpdates', ['message', 'chat_member']],
      ['test/getUpdates', ['poll']],
    ] as const) {
      await server.call(poller.token, method, { allowed_updates: allowed })
    }
    await this.#set(server, 'setWebhook', {
      url: sink.url('/main'),
      secret_token: 'main-secret',
      max_connections: 7,
      allowed_updates: ['message', 'chat_member'],
      ip_address: '127.0.0.1',
    })
    await this.#set(server, 'test/setWebhook', {
      url: sink.url('/test'),
      secret_token: 'test-secret',
      max_connections: 3,
    })
    for (let seq = 0; seq < 5; seq++) {
      this.pushed.push(await this.#push(server, poller, { chat_member: { seq } }))
      await this.#push(server, receiver, { chat_member: { seq } })
      assert.equal(await server.push(poller.botId, { poll: {} }), undefined)
    }
    await server.push(poller.botId, { poll: {} }, 'test=true')
    await server.push(receiver.botId, { message: { seq: 0 } }, 'test=true')
    this.before.push(...(await this.#info(server)))
  }

  async check(server: Server): Promise<void> {
    const { poller, receiver, pushed, sink } = this
    // The address of a webhook is known again after its deliveries have begun.
    await until(async () => isDeepStrictEqual(await this.#info(server), this.before))
    pushed.push(await this.#push(server, poller, { message: { seq: 5 } }))
    const { body } = await server.call(poller.token, 'getUpdates')
    assert.deepEqual(
      body.result.map((update: { update_id: number }) => update.update_id),
      pushed,
    )
    assertIdsGoOn(pushed)
    assert.equal(await server.push(poller.botId, { poll: {} }), undefined, 'filtered as before')
    const testPoll = await server.call(poller.token, 'test/getUpdates')
    assert.equal(testPoll.body.result.length, 1)
    const already = sink.deliveries.length
    this.#isAccepting = true
    // A failed delivery waits 2 s or more; one more update with another key shows immediately that deliveries go on.
    await server.push(receiver.botId, { message: { chat: { id: 9 }, seq: 'new' } })
    await until(() =>
      sink.deliveries.slice(already).some(({ update }) => update.message?.['seq'] === 'new'),
    )
    await until(() => {
      const paths = sink.deliveries.slice(already).map(({ path }) => path)
      return paths.filter((path) => path === '/main').length >= 6 && paths.includes('/test')
    }, 20_000)
    for (const { path, headers } of sink.deliveries.slice(already)) {
      assert.equal(headers['x-telegram-bot-api-secret-token'], `${path.slice(1)}-secret`)
    }
    await until(async () => {
      const infos = await this.#info(server)
      return infos.slice(2).every((info) => info['pending_update_count'] === 0)
    })
  }

  get isAccepting(): boolean {
    return this.#isAccepting
  }

  async #set(server: Server, method: string, parameters: object): Promise<void> {
    const { text, body } = await server.call(this.receiver.token, method, parameters)
    assert.equal(body.description, 'Webhook was set', text)
  }

  async #push(server: Server, bot: RegisteredBot, update: object): Promise<number> {
    const id = await server.push(bot.botId, update)
    assert(id !== undefined)
    return id
  }
}

/** The others end fewer processes than this one. */
const hardestLoss = 'kill -9 of all processes, with one worker instead of two'

const losses: readonly (readonly [string, (server: Server) => Promise<Server>])[] = [
  [
    'kill -9 of the workers',
    async (server) => {
      const pids = server.workerPids()
      for (const pid of pids) process.kill(pid, 'SIGKILL')
      await until(() => servingLines(server).length >= 2 * pids.length)
      return server
    },
  ],
  [
    'kill -9 of the primary, whose workers end by themselves',
    async (server) => {
      const pids = server.workerPids()
      await server.killPrimary()
      // A process closes its files a moment before it has ended.
      await until(() => !pids.some(isRunning))
      return server.restart()
    },
  ],
  [
    hardestLoss,
    async (server) => {
      await server.kill()
      return server.restart({ workers: 1 })
    },
  ],
  [
    'a clean end, with three workers instead of two',
    async (server) => server.restart({ workers: 3 }),
  ],
]

for (const [name, lose] of losses) {
  const skip = name !== hardestLoss && onlyWithAll(`another test does so after ${hardestLoss}`)
  test(`updates, webhooks and settings of both namespaces are there after ${name}`, {
    skip,
  }, async (t) => {
    const filled: Filled[] = []
    const sink = await startSink(t, (_delivery, response) => {
      response.writeHead(filled[0]?.isAccepting === true ? 200 : 500).end()
    })
    const server = await startServer(t, { workers: 2, flags: ['--local'] })
    const [poller, receiver] = [await server.register(), await server.register()]
    const state = new Filled({ sink, poller, receiver })
    filled.push(state)
    await state.fill(server)
    await state.check(await lose(server))
  })
}

test('a start with another --shards than the directory has fails and names both numbers', async (t) => {
  const server = await startServer(t, { workers: 2 })
  await server.stop()
  await assert.rejects(server.restart({ flags: ['--shards=16'] }), (error: Error) => {
    assert.match(error.message, /\b16\b/)
    assert.match(error.message, /\b8\b/)
    return true
  })
  const again = await server.restart({ flags: ['--shards=8'] })
  assert.equal((await again.admin('GET', '/readyz')).status, 200)
})

test('a second server on the same directory does not start and does not affect the first one', async (t) => {
  const server = await startServer(t, { workers: 2 })
  const { botId, token } = await server.register()
  const second = spawn(
    process.execPath,
    [
      fileURLToPath(new URL('../../src/main.js', import.meta.url)),
      'serve',
      `--dir=${server.dir}`,
      '--http-port=0',
      '--admin-port=0',
    ],
    { stdio: ['ignore', 'pipe', 'pipe'] },
  )
  t.after(() => second.kill('SIGKILL'))
  let output = ''
  for (const stream of [second.stdout, second.stderr]) {
    stream.on('data', (chunk: Buffer) => {
      output += chunk.toString()
    })
  }
  const [code] = await once(second, 'close')
  assert.equal(code, lockedExitCode)
  assert.match(output, /another server is running on this directory/)
  assert(output.includes(server.dir), output)
  const id = await server.push(botId, { message: {} })
  const { body } = await server.call(token, 'getUpdates')
  assert.deepEqual(body.result, [{ update_id: id, message: {} }])
  // This includes forwarding between workers: the second server must not have removed the sockets.
  for (const worker of [0, 1]) {
    const bot = await server.register(botOf(worker, 5))
    assert.equal((await getMeOver(server, [token, bot.token])).join(), '200,200')
  }
})

async function getMeOver(server: Server, tokens: readonly string[]): Promise<number[]> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  const statuses: number[] = []
  for (const token of tokens) statuses.push(await getMe(server, token, agent))
  agent.destroy()
  return statuses
}
