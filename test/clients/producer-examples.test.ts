/** Starts the example producers that are not TypeScript, by their one command, with their updates as a file. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import {
  answeringServer,
  type Answer,
  cut,
  producerKey,
  refused,
  stored,
} from '../support/webhook/answering-server.ts'
import { RunningScript } from '../support/kit/running-script.ts'
import { type RegisteredBot, type Server, startServer } from '../support/server/server.ts'
import { temporaryDirectory } from '../support/kit/temporary-directory.ts'

interface Producer {
  readonly name: string
  /** Lines of input that push messages with these texts. */
  input(texts: readonly string[]): string
}

const producers: readonly Producer[] = [
  // It pushes "hello" before its input.
  { name: 'producer.py', input: ([_hello, ...texts]) => linesOf(texts) },
  {
    name: 'producer.sh',
    input: (texts) => linesOf(texts.map((text) => JSON.stringify({ message: { text } }))),
  },
]
const few = ['hello', 'one', 'two', 'three']
/** The environment of an example that pushes to an `answeringServer`, but for its address. */
const ofAnswering = { ADMIN_KEY: producerKey, API_ROOT: 'none', BOT_TOKEN: '4711:x' }
const texts = ['hello', ...Array.from({ length: 120 }, (_, nth) => `text ${nth} of "ä"`)]

for (const producer of producers) {
  const { name } = producer
  const isMissing = name.endsWith('.py') && spawnSync('python3', ['--version']).status !== 0
  describe(name, { skip: isMissing ? 'python3 is missing' : false }, () => {
    test('pushes its input in order, even if its last line has no line break', async (t) => {
      const server = await startServer(t, { workers: 2 })
      const bot = await server.register()
      const env = { POSTBOTE_DIR: server.dir, BOT_TOKEN: bot.token }
      const example = startExample(t, producer, env, producer.input(texts).trimEnd())
      assert.equal(await example.exitCode(), 0, example.output)
      assert.deepEqual(await messagesOf(server, bot), texts)
      assert.equal(idsIn(example.output).length, texts.length)
    })

    test('repeats a push with its key when the server says so, and a stream from where it broke', async (t) => {
      const soon = { 'retry-after': '1' }
      const server = await answeringServer(t, [
        refused('STORE_UNAVAILABLE', 503, soon),
        refused('TOO_MANY_KEYS', 429, soon),
        cut,
        stored,
        brokenAfter('{"update_id":6}\n{"upd'),
        lines('{"update_id":7}\n{"filtered":true}\n'),
      ])
      const env = { ...ofAnswering, ADMIN_URL: server.url }
      const startMs = performance.now()
      const example = startExample(t, producer, env, producer.input(few))
      assert.equal(await example.exitCode(), 0, example.output)
      assert(performance.now() - startMs > 2_000, 'Retry-After was not honored')
      assert.deepEqual(idsIn(example.output), ['5', '6', '7'])
      const [single, ...others] = server.received.slice(0, 4)
      assert.equal(single?.line, 'POST /v1/bots/4711/updates')
      assert.match(String(single?.headers['idempotency-key']), /./)
      for (const other of others) {
        assert.equal(other.body, single?.body)
        assert.equal(other.headers['idempotency-key'], single?.headers['idempotency-key'])
      }
      const [first = '', second = ''] = server.received.slice(4).map(({ body }) => body)
      const pairs = first.split('\n')
      assert.equal(pairs.length, 7)
      const keys = [0, 2, 4].map((at) => JSON.parse(pairs[at] ?? '').idempotency_key)
      assert.equal(new Set(keys).size, 3)
      assert.equal(second, pairs.slice(2).join('\n'))
      assert.equal(server.received.length, 6)
    })

    test('repeats a stream that is refused for now, and the pairs of a stream that may succeed later', async (t) => {
      const server = await answeringServer(t, [
        stored,
        refused('UNAVAILABLE', 503, { 'retry-after': '1' }),
        lines(`{"update_id":6}\n${errorLine('STORE_UNAVAILABLE')}{"update_id":8}\n`),
        lines(errorLine('OUTCOME_UNKNOWN')),
        lines('{"update_id":7,"duplicate":true}\n'),
      ])
      const env = { ...ofAnswering, ADMIN_URL: server.url }
      const example = startExample(t, producer, env, producer.input(few))
      assert.equal(await example.exitCode(), 0, example.output)
      assert.deepEqual(idsIn(example.output), ['5', '6', '8', '7'])
      const [refusedBody = '', body = '', ...others] = server.received
        .slice(1)
        .map((each) => each.body)
      assert.equal(body, refusedBody)
      const second = body.split('\n').slice(2, 4)
      for (const other of others) assert.deepEqual(other.trimEnd().split('\n'), second)
      assert.equal(server.received.length, 5)
    })

    test('shows what is refused in the middle of a stream, and fails at the end', async (t) => {
      const body = `{"update_id":6}\n${errorLine('QUEUE_FULL')}{"update_id":8}\n`
      const server = await answeringServer(t, [stored, lines(body)])
      const env = { ...ofAnswering, ADMIN_URL: server.url }
      const example = startExample(t, producer, env, producer.input(few))
      assert.equal(await example.exitCode(), 1, example.output)
      assert.match(example.output, /QUEUE_FULL/)
      assert.deepEqual(idsIn(example.output), ['5', '6', '8'])
      assert.equal(server.received.length, 2)
    })

    test('ends with the reason of a push that is refused, and never shows the key', async (t) => {
      const server = await startServer(t, { workers: 2 })
      const env = { POSTBOTE_DIR: server.dir, BOT_TOKEN: '123456789:none' }
      const example = startExample(t, producer, env)
      assert.equal(await example.exitCode(), 1)
      assert.match(example.output, /UNKNOWN_BOT/)
      assert(!example.output.includes(server.key))
    })
  })
}

function startExample(
  t: TestContext,
  producer: Producer,
  env: NodeJS.ProcessEnv,
  input = producer.input(texts),
): RunningScript {
  const file = join(temporaryDirectory(t), 'input')
  writeFileSync(file, input)
  return new RunningScript(t, `./scripts/example ${producer.name} < ${file}`, env)
}

async function messagesOf(server: Server, { token }: RegisteredBot): Promise<string[]> {
  const found: string[] = []
  for (let offset = 0; ; ) {
    const { body } = await server.call(token, 'getUpdates', { offset })
    const updates: { update_id: number; message: { text: string } }[] = body.result
    if (updates.length === 0) return found
    found.push(...updates.map(({ message }) => message.text))
    offset = (updates.at(-1)?.update_id ?? 0) + 1
  }
}

function idsIn(output: string): string[] {
  return [...output.matchAll(/"update_id": ?(\d+)/g)].map(([, id = '']) => id)
}

function linesOf(all: readonly string[]): string {
  return all.map((line) => `${line}\n`).join('')
}

function errorLine(code: string): string {
  return `${JSON.stringify({ error: { code, message: 'no' } })}\n`
}

function lines(body: string): Answer {
  return (response) => response.writeHead(200, { 'content-type': 'application/x-ndjson' }).end(body)
}

function brokenAfter(body: string): Answer {
  return (response) => {
    response.writeHead(200, { 'content-type': 'application/x-ndjson' })
    response.write(body, () => response.destroy())
  }
}
