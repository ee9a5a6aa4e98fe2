/** A server whose updates are checked and encoded by JavaScript responds as usual, and both kinds read what the other stored. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { pairText } from '../support/producers/raw-push-stream.ts'
import { type RegisteredBot, type Server, startServer } from '../support/server/server.ts'

const native = { env: { POSTBOTE_NO_NATIVE_INGEST: '' } }
const plain = { env: { POSTBOTE_NO_NATIVE_INGEST: '1' } }
/** Large enough for the thread that checks large updates. */
const large = 'Ж'.repeat(100_000)

/** Every kind of pair: with and without keys, a large one, ids that JavaScript reads, and refused ones. */
function stream({ botId }: RegisteredBot, name: string): string {
  const keyed = (key: string): object => ({ bot_id: botId, idempotency_key: `${name}-${key}` })
  return [
    pairText({ bot_id: botId }, { message: { chat: { id: -100 }, text: `${name} é` } }),
    pairText({ bot_id: botId, ordering_key: 'own' }, { poll: { id: name } }),
    pairText(keyed('large'), { message: { chat: { id: 1 }, text: name + large } }),
    pairText(keyed('escaped'), `{"message":{"chat":{"\\u0069d":1e2},"text":"${name}"}}`),
    pairText(keyed('bad'), '{"message":{"text":"\\ud800"}}'),
    pairText({ bot_id: botId }, '{"message":{"a":01}}'),
    pairText({ bot_id: 'nobody' }, { message: {} }),
  ].join('')
}

/** Returns the addons of pushes that the server has loaded. */
function addonsOf(server: Server): string[] {
  const maps = server.pids().map((pid) => readFileSync(`/proc/${pid}/maps`, 'utf8'))
  return [
    ...new Set(maps.join().match(/(?:check_updates|encode_records|hash_keys)\.node/g)),
  ].toSorted()
}

async function pushStream(server: Server, bot: RegisteredBot, name: string): Promise<string[]> {
  const { status, text } = await server.admin('POST', '/v1/updates', stream(bot, name))
  assert.equal(status, 200)
  return text.trimEnd().split('\n')
}

interface Pending {
  readonly update_id: number
}

/** Returns the first page of what is pending. */
async function pageOf(
  server: Server,
  { token }: RegisteredBot,
  offset = 0,
): Promise<readonly Pending[]> {
  return (await server.call(token, 'getUpdates', { offset })).body.result
}

/** Reads and confirms everything that is pending. */
async function drain(server: Server, bot: RegisteredBot): Promise<readonly Pending[]> {
  const page = await pageOf(server, bot)
  const last = page.at(-1)
  if (last === undefined) return []
  await pageOf(server, bot, last.update_id + 1)
  return [...page, ...(await drain(server, bot))]
}

for (const [before, after, title] of [
  [native, plain, 'a server without native code responds as one with it, and reads what it stored'],
  [plain, native, 'a server with native code reads what one without it has stored'],
] as const) {
  test(title, async (t) => {
    const first = await startServer(t, before)
    const bot = await first.register(177)
    const results = await pushStream(first, bot, 'one')
    assert.equal(results.length, 7)
    assert.equal(results.filter((line) => line.includes('"error"')).length, 3, results.join('\n'))
    const pending = await pageOf(first, bot)
    assert.equal(pending.length, 4)

    const second = await first.restart(after)
    assert.deepEqual(await pageOf(second, bot), pending)
    const repeated = await pushStream(second, bot, 'one')
    for (const [at, line] of repeated.entries()) {
      const isKeyed = at === 2 || at === 3
      const { update_id: id } = JSON.parse(results[at] ?? '')
      const expected = isKeyed ? `"update_id":${id},"duplicate":true` : '"update_id":'
      if (id === undefined) assert.equal(line, results[at])
      else assert.ok(line.includes(expected), line)
    }
    await pushStream(second, bot, 'two')
    await second.push(bot.botId, { message: { text: 'alone' } })
    const addons = ['check_updates.node', 'encode_records.node', 'hash_keys.node']
    assert.deepEqual(addonsOf(second), after === native ? addons : [])

    const third = await second.restart(before)
    const all = await drain(third, bot)
    assert.deepEqual(all.slice(0, 4), pending)
    assert.deepEqual(
      all.map((update) => update.update_id),
      Array.from({ length: 4 + 2 + 4 + 1 }, (_, at) => (pending[0]?.update_id ?? 0) + at),
    )
  })
}
