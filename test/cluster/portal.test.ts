/** The owner's page with a real server: what its links may call, where it is served, and when they end. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { freshBotOf } from '../support/server/bot-of.ts'
import { BotOwner } from '../support/server/bot-owner.ts'
import { send, startServer } from '../support/server/server.ts'
import { shared, sharedServer } from '../support/server/shared-server.ts'
import { until } from '../support/kit/until.ts'
import { TailReader } from '../support/producers/tail-reader.ts'
import { startSink } from '../support/webhook/webhook-sink.ts'

const base = 'https://bots.example.com'
const publicServer = shared((owner) =>
  startServer(owner, {
    workers: 2,
    flags: [`--portal=${base}`, '--local', '--attempt-body-of-reserved', '--retain=1h'],
  }),
)
const plainServer = sharedServer()
const message = { message: { text: 'hello' } }

test('a link shows the bot that it is for on both listeners, whichever worker gets the call', async () => {
  const server = await publicServer()
  for (const worker of [0, 1]) {
    const { botId } = await server.register(freshBotOf(worker))
    const owner = await BotOwner.of(server, botId)
    assert.equal(owner.url.origin, base)
    assert.equal(owner.url.pathname, '/portal/')
    assert.match(owner.secret, new RegExp(`^pbo_${botId}_[\\w-]{43}$`))
    for (const at of [server.privateUrl, server.botUrl]) {
      const { status, text, body, headers } = await owner.call('GET', '', undefined, at)
      assert.equal(status, 200, text)
      assert.equal(body.bot_id, botId)
      assert.equal(headers['cache-control'], 'no-store')
      assert.equal(headers['set-cookie'], undefined)
    }
  }
})

test('an owner sees a failing delivery with its response, replays it, checks the endpoint and sends a test update', async (t) => {
  const server = await publicServer()
  const sink = await startSink(t)
  for (const worker of [0, 1]) {
    const { botId } = await server.register(freshBotOf(worker))
    const owner = await BotOwner.of(server, botId)
    const at = server.botUrl
    assert.equal((await owner.call('POST', '/webhook/check', undefined, at)).status, 404)
    const url = sink.url(`/owner-${worker}`)
    assert.equal((await server.admin('PUT', `/v1/bots/${botId}/webhook`, { url })).status, 200)
    const check = await owner.call('POST', '/webhook/check', undefined, at)
    assert.equal(check.status, 200, check.text)
    const pushed = await owner.call('POST', '/test-update', undefined, at)
    assert.equal(pushed.status, 200, pushed.text)
    const updateId: number = pushed.body.update_id
    await until(async () => {
      const { body } = await owner.call('GET', '/attempts', undefined, at)
      return body.attempts.some((each: { update_id: number }) => each.update_id === updateId)
    })
    const { body: kept } = await owner.call('GET', `/updates/${updateId}`, undefined, at)
    assert.equal(kept.update.message.text, 'This is a test update of Postbote.')
    assert.equal(kept.update.message.chat.id, botId)
    const replayed = await owner.call('POST', `/updates/${updateId}/replay`, undefined, at)
    assert.equal(replayed.status, 200, replayed.text)
  }
})

test('a link may only do what it was made for', async () => {
  const server = await plainServer()
  const { botId } = await server.register(freshBotOf(0))
  const looker = await BotOwner.of(server, botId, { can: ['look'] })
  assert.equal((await looker.call('GET', '')).status, 200)
  for (const [path, right] of [
    ['/test-update', 'test'],
    ['/webhook/check', 'check'],
    ['/dead-letters/replay', 'replay'],
  ] as const) {
    const { status, body } = await looker.call('POST', path)
    assert.equal(status, 403)
    assert.deepEqual(body.error, {
      code: 'LINK_LACKS_RIGHT',
      message: `This link does not allow this: it lacks ${right}`,
    })
  }
  const tester = await BotOwner.of(server, botId, { can: ['test'] })
  assert.equal((await tester.call('GET', '')).status, 403)
  assert.equal((await tester.call('POST', '/test-update')).status, 200)
})

test('the public listener answers as without a portal unless it is told to serve it', async () => {
  const server = await plainServer()
  const { botId } = await server.register(freshBotOf(1))
  const owner = await BotOwner.of(server, botId)
  assert.equal(owner.url.origin, server.privateUrl)
  const unknown = await send({ method: 'GET', url: `${server.botUrl}/nowhere/at/all` })
  for (const path of ['/portal/', '/portal/app.js', `/portal/v1/bots/${botId}`]) {
    const answer = await owner.ask('GET', path, undefined, server.botUrl)
    assert.equal(answer.status, 404)
    assert.equal(answer.text, unknown.text)
    assert.deepEqual(Object.keys(answer.headers), Object.keys(unknown.headers))
  }
})

test('the page is framed by the one origin of its link, sends no referrer and sets no cookie', async () => {
  const server = await publicServer()
  const { botId } = await server.register(freshBotOf(0))
  const origin = 'https://platform.example:8443'
  const framed = await BotOwner.of(server, botId, { origin })
  const plain = await BotOwner.of(server, botId)
  const other = new URL(framed.url)
  other.searchParams.set('origin', 'https://evil.example')
  for (const at of [server.privateUrl, server.botUrl]) {
    for (const [{ pathname, search }, ancestors] of [
      [framed.url, origin],
      [plain.url, "'none'"],
      [other, "'none'"],
    ] as const) {
      const { status, headers } = await send({ method: 'GET', url: at + pathname + search })
      assert.equal(status, 200)
      assert.match(
        String(headers['content-security-policy']),
        new RegExp(`(^|; )frame-ancestors ${ancestors}(;|$)`),
      )
      assert.equal(headers['referrer-policy'], 'no-referrer')
      assert.equal(headers['x-content-type-options'], 'nosniff')
      assert.equal(headers['cache-control'], 'no-store')
      assert.equal(headers['set-cookie'], undefined)
    }
  }
})

test('a link is dead everywhere when it was revoked, and what it has open ends', async () => {
  const server = await publicServer()
  for (const worker of [0, 1]) {
    const { botId } = await server.register(freshBotOf(worker))
    const [owner, stays] = [await BotOwner.of(server, botId), await BotOwner.of(server, botId)]
    const tails = await Promise.all(
      [owner, stays].flatMap(({ secret: key }) =>
        [server.privateUrl, server.botUrl].map((privateUrl) =>
          TailReader.open({ privateUrl, key }, `/portal/v1/bots/${botId}/tail?payload=true`),
        ),
      ),
    )
    assert.deepEqual(new Set(tails.map(({ status }) => status)), new Set([200]))
    await server.push(botId, message)
    await Promise.all(tails.map((tail) => tail.atLeast(1)))
    assert.equal((await owner.revoke()).status, 200)
    await until(() => tails[0]!.isEnded && tails[1]!.isEnded)
    assert.deepEqual([tails[2]!.isEnded, tails[3]!.isEnded], [false, false])
    const answers = await Promise.all(
      [server.privateUrl, server.botUrl].map((at) => owner.call('GET', '', undefined, at)),
    )
    assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([401]))
    assert.equal((await server.admin('DELETE', `/v1/bots/${botId}`)).status, 200)
    await until(() => tails[2]!.isEnded && tails[3]!.isEnded)
    assert.equal((await stays.call('GET', '')).status, 401)
  }
})
