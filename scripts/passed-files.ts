/**
 * Through which files of src/ a push, a poll and a delivery pass. A server with one worker does each of them many times while V8
 * counts the calls of its functions, another one does all but that, and a file is passed if one of its functions was called that
 * many times more often. The processes run bundles, which name the source above each part (bundle.ts).
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { Agent } from 'node:http'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { temporaryRoot } from '../test/support/kit/temporary-root.ts'
import {
  type RegisteredBot,
  send,
  type Server,
  startServer,
  type TestEnd,
} from '../test/support/server/server.ts'
import { startSink, type WebhookSink } from '../test/support/webhook/webhook-sink.ts'

/** How often each is done. More than a server calls any function by itself in the few seconds of a run. */
const times = 1_000

interface Scene {
  /** One connection for all requests, as producers and bots have. */
  readonly agent: Agent
  readonly server: Server
  readonly bot: RegisteredBot
  readonly sink: WebhookSink
}

interface Way {
  /** What happens in both runs. */
  before(scene: Scene): Promise<void>
  /** What happens in one of them. */
  pass(scene: Scene): Promise<void>
}

const ways: Readonly<Record<string, Way>> = {
  push: { before: async () => undefined, pass: push },
  poll: { before: push, pass: poll },
  delivery: {
    async before(scene) {
      const { server, bot, sink } = scene
      await server.call(bot.token, 'setWebhook', { url: sink.url('/'), max_connections: 1 })
      await server.admin('POST', `/v1/bots/${bot.botId}/pause`, {})
      await push(scene)
    },
    async pass({ server, bot, sink }) {
      await server.admin('POST', `/v1/bots/${bot.botId}/resume`, {})
      await sink.atLeast(times)
    },
  },
}

/** Returns the files of each way, in the order of their names. */
export async function passedFiles(): Promise<Readonly<Record<string, readonly string[]>>> {
  const found: Record<string, readonly string[]> = {}
  for (const [name, way] of Object.entries(ways)) {
    const without = await callsDuring((scene) => way.before(scene))
    const all = await callsDuring(async (scene) => {
      await way.before(scene)
      await way.pass(scene)
    })
    const passed = [...all].filter(([place, calls]) => calls - (without.get(place) ?? 0) >= times)
    found[name] = [...new Set(passed.map(([place]) => place.replace(/ .*/, '')))].toSorted()
  }
  return found
}

async function push({ agent, server, bot }: Scene): Promise<void> {
  const url = `${server.privateUrl}/v1/bots/${bot.botId}/updates`
  const headers = { authorization: `Bearer ${server.key}` }
  for (let nth = 0; nth < times; nth++) {
    const body = JSON.stringify({ message: { chat: { id: 1 }, text: `${nth}` } })
    await send({ method: 'POST', url, headers, body, agent })
  }
}

/** Each poll confirms the update of the one before. */
async function poll({ agent, server, bot }: Scene): Promise<void> {
  let offset = 0
  for (let nth = 0; nth < times; nth++) {
    const url = `${server.botUrl}/bot${bot.token}/getUpdates?limit=1&offset=${offset}`
    const { body } = await send({ method: 'GET', url, agent })
    offset = Number(body.result[0].update_id) + 1
  }
}

/** Returns how often each function was called, by its source and its place in the bundle. */
async function callsDuring(run: (scene: Scene) => Promise<void>): Promise<Map<string, number>> {
  const directory = mkdtempSync(join(temporaryRoot, 'postbote-coverage-'))
  const ends: TestEnd[] = [async () => rmSync(directory, { recursive: true })]
  const owner = { after: (end: TestEnd): void => void ends.push(end) }
  try {
    const sink = await startSink(owner)
    const server = await startServer(owner, {
      flags: ['--local', '--shards=1'],
      env: { NODE_V8_COVERAGE: directory },
    })
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    ends.push(async () => agent.destroy())
    await run({ agent, server, bot: await server.register(), sink })
    agent.destroy()
    await server.stop()
    return callsIn(directory)
  } finally {
    for (const end of ends.toReversed()) await end()
  }
}

/** What V8 writes at the end of a process. */
interface Coverage {
  readonly result: readonly {
    readonly url: string
    readonly functions: readonly {
      readonly functionName: string
      readonly ranges: readonly { readonly startOffset: number; readonly count: number }[]
    }[]
  }[]
}

function callsIn(directory: string): Map<string, number> {
  const calls = new Map<string, number>()
  for (const name of readdirSync(directory)) {
    const { result }: Coverage = JSON.parse(readFileSync(join(directory, name), 'utf8'))
    for (const { url, functions } of result.filter((script) => script.url.includes('/dist/'))) {
      const sourceAt = sourcesOf(readFileSync(fileURLToPath(url), 'utf8'))
      // The first range is the whole function, and its count how often it was called.
      for (const {
        functionName,
        ranges: [whole],
      } of functions) {
        const source = whole && sourceAt(whole.startOffset)
        if (source?.startsWith('src/') !== true) continue
        const place = `${source} ${functionName} ${whole?.startOffset}`
        calls.set(place, (calls.get(place) ?? 0) + (whole?.count ?? 0))
      }
    }
  }
  return calls
}

/** Returns a function that finds the source of a place in a bundle. */
function sourcesOf(bundle: string): (offset: number) => string | undefined {
  const parts = [...bundle.matchAll(/^\/\/ (\S+\.[cm]?[jt]s)$/gm)].map(
    ({ index, 1: source = '' }) => ({
      index,
      source,
    }),
  )
  return (offset) => parts.findLast(({ index }) => index <= offset)?.source
}
