/**
 * Starts each example by its one command. That command first builds what is outdated, so the first test does nothing else.
 */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import {
  type FakeUpstream,
  startUpstream,
  type UpstreamCall,
} from '../support/network/fake-upstream.ts'
import { RunningScript } from '../support/kit/running-script.ts'
import { type RegisteredBot, type Server, startServer } from '../support/server/server.ts'
import { temporaryDirectory } from '../support/kit/temporary-directory.ts'
import { freePort } from '../support/kit/port.ts'

const bots = ['grammy-echo', 'telegraf-echo', 'fetch-echo'] as const

test('the command without an example lists the examples', async (t) => {
  const help = new RunningScript(t, './scripts/example')
  assert.equal(await help.exitCode(), 0)
  for (const name of bots) assert(help.output.includes(name), help.output)
})

// The examples wait most of the time, but starting all of them at the same time would start thirty processes.
describe('the examples', { concurrency: 2 }, () => {
  test('each bot echoes in order, survives a restart of the server, and leaves nothing unconfirmed', async (t) => {
    const upstream = await startUpstream(t, answerWithMessage)
    const first = await startServer(t, { workers: 2, flags: [`--upstream=${upstream.url}`] })
    const echoers = await Promise.all(
      bots.map(async (name) => new Echoer(t, { name, upstream, bot: await first.register() })),
    )
    await Promise.all(
      echoers.map(async (echoer) => {
        await echoer.start(first)
        for (const text of ['one', 'two', 'three']) await echoer.hear(first, text)
      }),
    )
    const second = await first.restart()
    await Promise.all(
      echoers.map(async (echoer) => {
        await echoer.hear(second, 'after the restart')
        assert.equal(await echoer.end('SIGINT'), 0)
        assert.equal(await echoer.pending(second), 0)
        // It receives what was pushed while it was stopped, and nothing twice.
        await second.push(echoer.bot.botId, messageOf('while it was away'))
        await echoer.start(second)
        await echoer.said('while it was away')
        assert.equal(await echoer.end('SIGTERM'), 0)
        assert.equal(await echoer.pending(second), 0)
        const heard = ['one', 'two', 'three', 'after the restart', 'while it was away']
        assert.deepEqual(echoer.texts(), heard, echoer.name)
      }),
    )
  })

  test('bots that handle one message at a time keep the order of a hundred pending messages', async (t) => {
    const upstream = await startUpstream(t, answerWithMessage)
    const server = await startServer(t, { workers: 2, flags: [`--upstream=${upstream.url}`] })
    const texts = Array.from({ length: 100 }, (_, index) => `text ${index}`)
    const orderly = ['grammy-echo', 'fetch-echo'].map(async (name) => {
      const echoer = new Echoer(t, { name, upstream, bot: await server.register() })
      for (const text of texts) await server.push(echoer.bot.botId, messageOf(text))
      await echoer.start(server)
      await echoer.said('text 99')
      assert.equal(await echoer.end('SIGINT'), 0)
      assert.deepEqual(echoer.texts(), texts)
    })
    await Promise.all(orderly)
  })

  test('the bot that uses fetch repeats an echo that failed, even after its next start', async (t) => {
    let isDown = true
    const upstream = await startUpstream(t, (call, response) => {
      if (isDown) response.writeHead(500).end('{"ok":false,"error_code":500,"description":"Down"}')
      else answerWithMessage(call, response)
    })
    const server = await startServer(t, { workers: 2, flags: [`--upstream=${upstream.url}`] })
    const echoer = new Echoer(t, { name: 'fetch-echo', upstream, bot: await server.register() })
    await server.push(echoer.bot.botId, messageOf('hello'))
    await echoer.start(server)
    await upstream.atLeast(2)
    assert.equal(await echoer.end('SIGINT'), 0)
    assert.equal(await echoer.pending(server), 1)
    isDown = false
    const before = upstream.calls.length
    await echoer.start(server)
    await upstream.atLeast(before + 1)
    assert.equal(await echoer.end('SIGINT'), 0)
    assert.equal(await echoer.pending(server), 0)
    assert.deepEqual(new Set(echoer.texts()), new Set(['hello']))
  })

  test('the three commands of examples/README.md carry a message to the bot and back', async (t) => {
    const page = readFileSync(new URL('../../../examples/README.md', import.meta.url), 'utf8')
    const [, block = ''] = /^```sh\n([^`]*)^```/m.exec(page) ?? []
    const port = String(await freePort())
    const [serve = '', produce = '', answer = ''] = block.trim().replace('8090', port).split('\n')
    // Runs the commands as written, except for the directory and the ports, which may be in use here.
    const env = {
      POSTBOTE_DIR: join(temporaryDirectory(t), 'data'),
      POSTBOTE_HTTP_PORT: '0',
      POSTBOTE_ADMIN_PORT: '0',
      PLATFORM_PORT: port,
    }
    const server = new RunningScript(t, serve, env)
    await server.printed(/Poll for it:/)
    const producer = new RunningScript(t, produce, env)
    await producer.printed(/^type messages to the bot/m)
    const bot = new RunningScript(t, answer, env)
    await producer.printed(/^bot: hello$/m)
    const lines = Array.from({ length: 20 }, (_, index) => `line ${index} "of" <text> ä`)
    for (const line of lines) producer.type(line)
    await producer.printed(/^bot: line 19 .*$/m)
    const said = producer.output.split('\n').filter((line) => line.startsWith('bot: '))
    assert.deepEqual(said, ['bot: hello', ...lines.map((line) => `bot: ${line}`)])
    assert.equal(await bot.end('SIGINT'), 0)
    assert.equal(await producer.end('SIGINT'), 0)
    assert.equal(await server.end('SIGINT'), 0)
  })

  test('without an upstream server a bot says what to start, and continues', async (t) => {
    const server = await startServer(t, { workers: 2 })
    const homeless = bots.map(async (name) => {
      const bot = await server.register()
      const example = startExample(t, [name, bot.token], server.dir)
      await server.push(bot.botId, messageOf('hello'))
      await example.printed(/404.*Not Found: method not found.*\n.*examples\/README\.md/)
      await server.push(bot.botId, messageOf('hello again'))
      await example.printed(/404[^]*404/)
      assert.equal(await example.end('SIGINT'), 0)
    })
    await Promise.all(homeless)
  })

  test('a failure is reported in one line', async (t) => {
    const dir = temporaryDirectory(t)
    const none = await failureOf(t, ['grammy-echo'], dir)
    assert.match(none.output, /^postbote: no server runs on .*: .*examples\/README\.md/)
    assert.equal(none.code, 1)
    const unknown = await failureOf(t, ['grammy'], dir)
    assert.match(
      unknown.output,
      /^postbote: unknown example "grammy": expected one of .*fetch-echo, grammy-echo/,
    )
    assert.equal(unknown.code, 2)
    const server = await startServer(t, { workers: 2 })
    const nameless = await failureOf(t, ['fetch-echo'], server.dir)
    assert.match(nameless.output, /^postbote: there is no demo bot in .*: run \.\/scripts\/start/)
    const strangers = bots.map(async (name) => {
      const { output, code } = await failureOf(t, [name, '123456789:wrong'], server.dir)
      assert.match(output, /postbote: .*401.*Unauthorized[^\n]*\n$/)
      assert.equal(code, 1)
    })
    await Promise.all(strangers)
  })
})

/** An example that is a bot, across its starts and ends. */
class Echoer {
  readonly name: string
  readonly bot: RegisteredBot
  readonly #t: TestContext
  readonly #upstream: FakeUpstream
  #example: RunningScript | undefined

  constructor(
    t: TestContext,
    parts: {
      readonly name: string
      readonly bot: RegisteredBot
      readonly upstream: FakeUpstream
    },
  ) {
    this.#t = t
    this.name = parts.name
    this.bot = parts.bot
    this.#upstream = parts.upstream
  }

  /** Resolves when the example reports that it runs. */
  async start(server: Server): Promise<void> {
    this.#example = startExample(this.#t, [this.name, this.bot.token], server.dir)
    await this.#example.printed(/Ctrl-C stops the (?:bot|producer)\n/)
  }

  /** Pushes a message and waits for its echo. */
  async hear(server: Server, text: string): Promise<void> {
    await server.push(this.bot.botId, messageOf(text))
    await this.said(text)
  }

  async said(text: string): Promise<void> {
    const example = this.#example
    assert(example !== undefined)
    while (!this.texts().includes(text)) {
      assert(!example.isEnded, example.output)
      const isNext = this.#upstream.atLeast(this.#upstream.calls.length + 1)
      await Promise.race([isNext, example.exitCode()])
    }
  }

  /** Returns the texts that the bot has sent so far. */
  texts(): string[] {
    const url = `/bot${this.bot.token}/sendMessage`
    return this.#upstream.calls
      .filter((call) => call.url === url)
      .map((call) => {
        const { chat_id, text } = JSON.parse(call.text)
        assert.equal(chat_id, 42)
        return text
      })
  }

  async end(signal: NodeJS.Signals): Promise<number | null> {
    assert(this.#example !== undefined)
    return this.#example.end(signal)
  }

  async pending(server: Server): Promise<number> {
    const { body } = await server.admin('GET', `/v1/bots/${this.bot.botId}`)
    return body.pending
  }
}

function startExample(t: TestContext, args: readonly string[], dir: string): RunningScript {
  return new RunningScript(t, `./scripts/example ${args.join(' ')}`, { POSTBOTE_DIR: dir })
}

async function failureOf(
  t: TestContext,
  args: readonly string[],
  dir: string,
): Promise<{ code: number | null; output: string }> {
  const example = startExample(t, args, dir)
  const code = await example.exitCode()
  return { code, output: example.output }
}

function messageOf(text: string): object {
  const chat = { id: 42, type: 'private', first_name: 'Ada' }
  const from = { id: 42, is_bot: false, first_name: 'Ada' }
  return { message: { message_id: 1, date: 1_700_000_000, chat, from, text } }
}

/** Responds as sendMessage does. */
function answerWithMessage(_call: UpstreamCall, response: ServerResponse): void {
  const result = { message_id: 2, date: 1_700_000_000, chat: { id: 42, type: 'private' } }
  response.writeHead(200, { 'Content-Type': 'application/json' })
  response.end(JSON.stringify({ ok: true, result }))
}
