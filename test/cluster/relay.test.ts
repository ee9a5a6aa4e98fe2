/** Relays that take the updates of bots from another bot API server, on a server with two workers. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startSmallOrigin } from '../support/network/small-origin.ts'
import { until } from '../support/kit/until.ts'
import { freshBotOf } from '../support/server/bot-of.ts'
import { type RegisteredBot, type Server, startServer } from '../support/server/server.ts'
import { shared } from '../support/server/shared-server.ts'

const started = shared(async (owner) => {
  const origin = await startSmallOrigin(owner)
  const flags = ['--local', `--relay-from=${origin.url}`, '--log-level=trace']
  return { origin, server: await startServer(owner, { workers: 2, flags }) }
})
const secret = 'AAF-abcdefghijklmnopqrstuvwxyz_0123'
const token = `123456789:${secret}`

async function textsOf(server: Server, bot: RegisteredBot, count: number): Promise<string[]> {
  const texts: string[] = []
  let offset: number | undefined
  while (texts.length < count) {
    const { body } = await server.call(bot.token, 'getUpdates', { offset, timeout: 5 })
    assert(body.result.length > 0, `expected ${count} updates, got ${texts.join(' ')}`)
    for (const update of body.result) {
      texts.push(update.message.text)
      offset = update.update_id + 1
    }
  }
  return texts
}

function message(text: string): object {
  return { message: { message_id: 1, date: 1, chat: { id: 5, type: 'private' }, text } }
}

test('a bot gets the updates of its origin once and in order, after a kill, too', async (t) => {
  const origin = await startSmallOrigin(t)
  const flags = ['--local', `--relay-from=${origin.url}`]
  let server = await startServer(t, { workers: 1, flags })
  const bot = await server.register()
  const path = `/v1/bots/${bot.botId}/relay`
  origin.add(message('a'), message('b'))
  const set = await server.admin('PUT', path, { from: origin.url, token })
  assert.equal(set.status, 200, set.text)
  await until(() => origin.pending.length === 0)
  server = await server.restart({ workers: 1, flags })
  origin.add(message('c'))
  await until(() => origin.pending.length === 0)
  assert.deepEqual(await textsOf(server, bot, 3), ['a', 'b', 'c'])
  const { body } = await server.admin('GET', path)
  assert.equal(body.state, 'polling')
  assert.equal(body.relayed, 1)
  const [first] = origin.polls
  assert.equal(first?.path, `/bot${token}/getUpdates`)
  assert.equal(first?.timeout, 50)
  assert(first?.allowed_updates.includes('message'))
})

test('a server that has no relay, or does not list the origin, refuses it by name', async () => {
  const { origin, server } = await started()
  const { botId } = await server.register(freshBotOf(1))
  const path = `/v1/bots/${botId}/relay`
  assert.equal((await server.admin('GET', path)).body.error.code, 'NO_RELAY')
  assert.equal((await server.admin('DELETE', path)).body.error.code, 'NO_RELAY')
  for (const [body, named] of [
    [{ from: 'https://api.telegram.org', token }, /^from: expected/],
    [{ from: `${origin.url}/x`, token }, /^from: expected/],
    [{ from: origin.url }, /^token: expected/],
    [{ from: origin.url, token: secret }, /^token: expected/],
    [{ from: token, token }, /^from: expected/],
    [{ token }, /from/],
    [{ from: origin.url, token, offset: 1 }, /offset/],
  ] as const) {
    const { status, body: said, text } = await server.admin('PUT', path, body)
    assert.equal(status, 400, text)
    assert.match(said.error.message.replace(/^[^:]*: /, ''), named)
    assert(!text.includes(secret), text)
  }
})
