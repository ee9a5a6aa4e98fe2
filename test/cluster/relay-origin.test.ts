/**
 * Relays and what an origin may do to them: the fake origin keeps the rules of the reference, and does wrong on demand. At
 * the end nothing of a token is anywhere.
 */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { readFilesIn } from '../support/kit/files-in.ts'
import { temporaryDirectory } from '../support/kit/temporary-directory.ts'
import { until } from '../support/kit/until.ts'
import { chatMessage, type OriginCall, type OriginFault } from '../support/origin/origin-calls.ts'
import { Origin } from '../support/origin/origin.ts'
import {
  foreignToken,
  relayedBot,
  setRelay,
  startRelayServer,
} from '../support/origin/relay-server.ts'
import { TailReader } from '../support/producers/tail-reader.ts'
import { freshBotOf } from '../support/server/bot-of.ts'
import { type RegisteredBot, send, type Server } from '../support/server/server.ts'
import { shared } from '../support/server/shared-server.ts'
import { outputOf } from '../support/programs/postbote.ts'

const pendingMax = 20
/** Of a relay, after which it has tried again; its waits grow. */
const againMsMax = 30_000
const chat = 5
/** Every token that the server was given. */
const tokens: string[] = []
/** What the server has said about its relays. */
const said: string[] = []

const started = shared(async (owner) => {
  const origin = await Origin.start(owner)
  const flags = ['--log-level=trace', `--max-pending-updates=${pendingMax}`]
  const server = await startRelayServer(owner, origin, { flags })
  const events = await TailReader.open(server, '/v1/events?after=0')
  return { origin, server, events }
})

interface World {
  readonly origin: Origin
  readonly server: Server
  readonly events: TailReader
  readonly bot: RegisteredBot
}

let worker = 0
/** Far below every id: all updates are given and none is confirmed. */
let lastOffset = 0

/** Returns a relayed bot whose first poll waits. */
async function relayed(): Promise<World> {
  const { origin, server, events } = await started()
  worker = 1 - worker
  const bot = await relayedBot(origin, server, freshBotOf(worker))
  tokens.push(bot.token)
  await until(() => origin.control.isPolled(bot.botId), againMsMax)
  return { origin, server, events, bot }
}

/** Resolves with the texts that the bot has, when there are that many. */
async function textsOf({ server, bot }: World, count: number): Promise<readonly string[]> {
  let texts: readonly string[] = []
  await until(async () => {
    // The same offset again soon would get one update.
    const { body } = await server.call(bot.token, 'getUpdates', { offset: ++lastOffset })
    texts = body.result.map(
      ({ message }: { readonly message: { readonly text: string } }) => message.text,
    )
    return texts.length >= count
  }, againMsMax)
  return texts
}

async function reportOf({
  server,
  bot,
}: World): Promise<{ readonly state: string; readonly reason: string | null }> {
  const { status, text, body } = await server.admin('GET', `/v1/bots/${bot.botId}/relay`)
  assert.equal(status, 200, text)
  said.push(text)
  return body
}

async function pausedBecause(world: World, reason: RegExp): Promise<void> {
  await until(async () => (await reportOf(world)).state === 'paused', againMsMax)
  assert.match((await reportOf(world)).reason ?? '', reason)
  const { botId } = world.bot
  const paused = ({ name, data }: TailReader['events'][number]): boolean =>
    name === 'relay.paused' && data.bot_id === botId && reason.test(JSON.stringify(data))
  await until(() => world.events.events.some(paused))
}

async function resumed(world: World): Promise<void> {
  await until(async () => (await reportOf(world)).state === 'polling', againMsMax)
}

async function pollsOf({ origin, bot }: World): Promise<readonly OriginCall[]> {
  return (await origin.control.calls()).filter(({ botId }) => botId === bot.botId)
}

function push({ origin, bot }: World, ...texts: readonly string[]): Promise<unknown> {
  return origin.control.push(
    bot.botId,
    texts.map((text) => chatMessage(chat, text)),
  )
}

test('relays and origins', { concurrency: true }, async (t) => {
  await started()
  await Promise.all([
    t.test(
      'updates keep their bytes and order, and are confirmed after they are stored',
      async () => {
        const world = await relayed()
        const { origin, server, bot } = world
        await push(world, 'one', 'two')
        await push(world, 'three')
        assert.deepEqual(await textsOf(world, 3), ['one', 'two', 'three'])
        await until(async () => (await origin.control.pending(bot.botId)) === 0)
        const { body } = await server.call(bot.token, 'getUpdates')
        assert.deepEqual(body.result[0].message, chatMessage(chat, 'one', 1).message)
      },
    ),

    t.test('it asks for the types that the bot asks for', async () => {
      const world = await relayed()
      const { server, bot } = world
      const allowed = ['message', 'message_reaction']
      await server.call(bot.token, 'getUpdates', { allowed_updates: allowed })
      await push(world, 'one')
      await until(async () => {
        const last = (await pollsOf(world)).at(-1)
        await push(world, 'more')
        return JSON.stringify(last?.allowed) === JSON.stringify(allowed)
      })
    }),

    t.test('a webhook at the origin pauses it, until somebody removes that', async () => {
      const world = await relayed()
      const { origin, bot } = world
      await origin.control.setWebhook(bot.botId, 'https://example.com/hook')
      await push(world, 'one')
      await pausedBecause(world, /webhook/)
      await origin.control.setWebhook(bot.botId, '')
      await resumed(world)
      assert.deepEqual(await textsOf(world, 1), ['one'])
    }),

    t.test('a pause is over when the origin answers, also without an update', async () => {
      const world = await relayed()
      const { origin, bot } = world
      const fault = { kind: 'refuse', status: 500, description: 'Internal' } as const
      await origin.control.fault(bot.botId, fault, 2)
      await push(world, 'one')
      await pausedBecause(world, /500/)
      await resumed(world)
    }),

    t.test('another poller pauses it, and it goes on later', async () => {
      const world = await relayed()
      const { origin, bot } = world
      const other = await send({
        method: 'GET',
        url: `${origin.url}/bot${bot.token}/getUpdates?offset=1&timeout=1`,
      })
      assert.equal(other.status, 200)
      await pausedBecause(world, /[Ss]omebody else polls/)
      await push(world, 'one')
      await resumed(world)
      assert.deepEqual(await textsOf(world, 1), ['one'])
    }),

    t.test('a renewed token pauses it, until it is set with the new one', async () => {
      const world = await relayed()
      const { origin, server, bot } = world
      await push(world, 'one')
      await textsOf(world, 1)
      const token = foreignToken(bot.botId)
      tokens.push(token)
      await origin.control.renew(bot.botId, token)
      await push(world, 'two')
      await pausedBecause(world, /401/)
      await setRelay(server, { ...bot, token, origin })
      await push(world, 'three')
      assert.deepEqual(await textsOf(world, 3), ['one', 'two', 'three'])
    }),

    t.test('it calls a busy origin again only after its Retry-After', async () => {
      const world = await relayed()
      const { origin, bot } = world
      const description = 'Too Many Requests: retry after 4'
      const fault = { kind: 'refuse', status: 429, description, retryAfterS: 4 } as const
      await origin.control.fault(bot.botId, fault, 1)
      await push(world, 'one')
      await pausedBecause(world, /429/)
      await push(world, 'two')
      assert.deepEqual(await textsOf(world, 2), ['one', 'two'])
      const polls = await pollsOf(world)
      const nth = polls.findIndex(({ status }) => status === 429)
      const pauseMs = (polls[nth + 1]?.startMs ?? 0) - (polls[nth]?.endMs ?? 0)
      assert(pauseMs >= 3_990, `${pauseMs} ms`)
    }),

    ...(
      [
        [
          'an origin that fails',
          { kind: 'refuse', status: 502, description: 'Bad Gateway' },
          /502/,
        ],
        [
          'a page in place of an answer',
          { kind: 'respond', status: 200, body: '<html>TOKEN</html>' },
          /no answer/,
        ],
        [
          'half a list',
          { kind: 'respond', status: 200, body: '{"ok":true,"result":[{"update_id":1,' },
          /no answer/,
        ],
        [
          'a redirect to a host that would get the token',
          {
            kind: 'respond',
            status: 302,
            body: '',
            headers: { location: 'ORIGIN/botTOKEN/getMe' },
          },
          /redirect/,
        ],
        [
          'a refusal that repeats the token',
          { kind: 'refuse', status: 400, description: 'Bad Request: bad TOKEN' },
          /400/,
        ],
        ['responses that break off', { kind: 'cut' }, /broke off/],
      ] as const
    ).map(([name, fault, reason]) =>
      t.test(`${name} pauses it, and then nothing is lost or doubled`, async () => {
        const world = await relayed()
        const { origin, bot } = world
        await origin.control.fault(bot.botId, told(fault, world), 2)
        // The poll that waits gets these.
        await push(world, 'one', 'two')
        await until(async () => (await pollsOf(world)).length > 0)
        await push(world, 'three')
        await pausedBecause(world, reason)
        await resumed(world)
        assert.deepEqual(await textsOf(world, 3), ['one', 'two', 'three'])
        const polls = await pollsOf(world)
        assert(polls.every(({ method }) => method === 'getUpdates'))
        // The first one waited before the fault, the second one may come at once.
        assert((polls.at(-1)?.startMs ?? 0) - (polls[0]?.endMs ?? 0) > 1_000)
      }),
    ),

    t.test('a full queue pauses it, and nothing is lost', async () => {
      const world = await relayed()
      const { origin, server, bot } = world
      const texts = Array.from({ length: pendingMax + 15 }, (_, nth) => `t${nth}`)
      await push(world, ...texts)
      await pausedBecause(world, /queue|full/i)
      const got: string[] = []
      await until(async () => {
        const { body } = await server.call(bot.token, 'getUpdates')
        const updates: { update_id: number; message: { text: string } }[] = body.result
        got.push(...updates.map(({ message }) => message.text))
        const last = updates.at(-1)?.update_id
        if (last !== undefined) await server.call(bot.token, 'getUpdates', { offset: last + 1 })
        return got.length >= texts.length
      }, againMsMax)
      assert.deepEqual([...new Set(got)], texts)
      await until(async () => (await origin.control.pending(bot.botId)) === 0, againMsMax)
    }),

    t.test('an update that cannot be stored is skipped and reported', async () => {
      const world = await relayed()
      const { origin, bot, events } = world
      let deep: object = {}
      for (let level = 0; level < 80; level++) deep = { deep }
      await origin.control.push(bot.botId, [
        chatMessage(chat, 'before'),
        { message: { text: 'x'.repeat(600_000) } },
        { message: deep },
        chatMessage(chat, 'after'),
      ])
      assert.deepEqual(await textsOf(world, 2), ['before', 'after'])
      await until(async () => (await origin.control.pending(bot.botId)) === 0)
      await until(() =>
        events.events.some(
          ({ name, data }) => name === 'relay.refused' && data.bot_id === bot.botId,
        ),
      )
    }),

    t.test('no other server than those of the option is polled', async () => {
      const { origin, server, bot } = await relayed()
      for (const from of ['http://127.0.0.1:9', `${origin.url}@127.0.0.1:9`, `${origin.url}/x`]) {
        const relay = { from, token: bot.token }
        const { status, text } = await server.admin('PUT', `/v1/bots/${bot.botId}/relay`, relay)
        assert.equal(status, 400, text)
        said.push(text)
      }
    }),
  ])
})

/** A fault whose texts name the token and the origin. */
function told(fault: OriginFault, { origin, bot }: World): OriginFault {
  const text = JSON.stringify(fault).replaceAll('TOKEN', bot.token).replaceAll('ORIGIN', origin.url)
  return JSON.parse(text)
}

test('nothing was called at the origin but getUpdates', async () => {
  const { origin } = await started()
  const methods = new Set((await origin.control.calls()).map(({ method }) => method))
  assert.deepEqual([...methods], ['getUpdates'])
})

test('no token is in the log, the metrics, a page, an event, an export, or the directory', async (t) => {
  const { server, events } = await started()
  const paths = [
    '/metrics',
    '/v1/bots',
    '/v1/summary',
    '/v1/audit',
    '/v1/history',
    '/v1/openapi.json',
  ]
  const ids = tokens.map((token) => Number.parseInt(token, 10))
  const all = [...paths, ...ids.flatMap((id) => [`/v1/bots/${id}`, `/v1/bots/${id}/relay`])]
  const answers = await Promise.all(all.map(async (path) => (await server.admin('GET', path)).text))
  const file = join(temporaryDirectory(t), 'export')
  const place = [`--dir=${server.dir}`, `--admin-port=${new URL(server.privateUrl).port}`]
  await outputOf(['export', file, ...place])
  const shown = await outputOf(['bots', 'show', String(ids[0]), ...place])
  const files = Array.from(readFilesIn(server.dir).values(), (bytes) => bytes.toString('latin1'))
  const commandLines = server.pids().map((pid) => readFileSync(`/proc/${pid}/cmdline`, 'latin1'))
  const places = {
    output: [server.output()],
    answers: [...answers, ...said],
    events: events.events.map((event) => JSON.stringify(event)),
    export: [readFileSync(file, 'latin1')],
    shown: [shown],
    files,
    commandLines,
  }
  assert(tokens.length >= 12)
  assert(places.events.length > 5 && places.files.length > 5)
  for (const token of tokens) {
    const secret = token.slice(token.indexOf(':') + 1)
    for (const [name, texts] of Object.entries(places)) {
      for (const text of texts) {
        for (const part of [secret, secret.slice(0, 12), secret.slice(-12)]) {
          assert(!text.includes(part), `${name} has a part of a token`)
        }
      }
    }
  }
})
