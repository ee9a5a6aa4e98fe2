/** The owner's page with a real server: what its links may call, where it is served, and when they end. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { portalLinksMax } from '../../src/features/portal/portal-links.ts'
import { filesIn } from '../support/kit/files-in.ts'
import { temporaryDirectory } from '../support/kit/temporary-directory.ts'
import { freshBotOf } from '../support/server/bot-of.ts'
import { portalChangesBurst } from '../../src/modules/portal-api.ts'
import { BotOwner } from '../support/server/bot-owner.ts'
import { freshAddress } from '../support/server/fresh-address.ts'
import { send, startServer } from '../support/server/server.ts'
import { shared, sharedServer } from '../support/server/shared-server.ts'
import { until } from '../support/kit/until.ts'
import { TailReader } from '../support/producers/tail-reader.ts'
import { startSink } from '../support/webhook/webhook-sink.ts'
import { outputOf } from '../support/programs/postbote.ts'

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
  let isBroken = true
  const sink = await startSink(t, ({ update }, response) => {
    if (isBroken && update.message !== undefined) response.writeHead(500).end('a mistake of mine')
    else response.end()
  })
  for (const worker of [0, 1]) {
    const { botId } = await server.register(freshBotOf(worker))
    const owner = await BotOwner.of(server, botId)
    const at = server.botUrl
    assert.equal((await owner.call('POST', '/webhook/check', undefined, at)).status, 404)
    const url = sink.url(`/path-secret-${worker}`)
    assert.equal((await server.admin('PUT', `/v1/bots/${botId}/webhook`, { url })).status, 200)
    const check = await owner.call('POST', '/webhook/check', undefined, at)
    assert.equal(check.body.ok, true, check.text)
    const elsewhere = { url: sink.url('/elsewhere') }
    assert.equal((await owner.call('PUT', '/webhook', elsewhere, at)).status, 404)
    isBroken = true
    const pushed = await owner.call('POST', '/test-update', undefined, at)
    const updateId: number = pushed.body.update_id
    const attempted = async (status: number): Promise<boolean> => {
      const { body, text } = await owner.call('GET', '/attempts', undefined, at)
      assert(!text.includes('path-secret'), text)
      return body.attempts.some(
        (each: {
          readonly update_id: number
          readonly status: number
          readonly response_body: string
        }) =>
          each.update_id === updateId &&
          each.status === status &&
          (status === 200 || each.response_body === 'a mistake of mine'),
      )
    }
    await until(() => attempted(500))
    isBroken = false
    await until(() => attempted(200))
    const { body: kept } = await owner.call('GET', `/updates/${updateId}`, undefined, at)
    assert.equal(kept.update.message.text, 'This is a test update of Postbote.')
    assert.equal(kept.update.message.chat.id, botId)
    const replayed = await owner.call('POST', `/updates/${updateId}/replay`, undefined, at)
    assert.equal(replayed.status, 200, replayed.text)
    const { body: audit } = await server.admin('GET', `/v1/audit?key=${owner.linkId}`)
    assert.deepEqual(
      audit.calls.map((each: { readonly operation: string; readonly bot_id: number }) => [
        each.operation,
        each.bot_id,
      ]),
      [
        ['replayUpdate', botId],
        ['pushTestUpdate', botId],
        ['checkWebhook', botId],
        ['checkWebhook', botId],
      ],
    )
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

test('a link is dead everywhere at its end, and what it has open ends', async () => {
  const server = await publicServer()
  const owners = await Promise.all(
    [0, 1].map(async (worker) => {
      const { botId } = await server.register(freshBotOf(worker))
      return BotOwner.of(server, botId, { ttl: 2 })
    }),
  )
  await Promise.all(
    owners.flatMap((owner) =>
      [server.privateUrl, server.botUrl].map(async (at) => {
        const path = `/portal/v1/bots/${owner.botId}/tail`
        const tail = await TailReader.open({ privateUrl: at, key: owner.secret }, path)
        assert.equal(tail.status, 200)
        const beganMs = Date.now()
        await until(() => tail.isEnded)
        assert(Date.now() - beganMs < 3_500)
        assert.equal((await owner.call('GET', '', undefined, at)).status, 401)
      }),
    ),
  )
  const { body } = await server.admin('GET', `/v1/bots/${owners[0]!.botId}/portal`)
  assert.deepEqual(body, { links: [] })
})

test('the links of a bot are bounded, and so are their calls and tails', async () => {
  const server = await publicServer()
  const { botId } = await server.register(freshBotOf(1))
  const path = `/v1/bots/${botId}/portal`
  const links = await Promise.all(
    Array.from({ length: portalLinksMax }, () => BotOwner.of(server, botId)),
  )
  const more = await server.admin('POST', path, { ttl: 60 })
  assert.equal(more.body.error.code, 'TOO_MANY_LINKS')
  assert.equal((await links[0]!.revoke()).status, 200)
  assert.equal((await links[0]!.revoke()).status, 404)
  const tails = await Promise.all(
    links
      .slice(1, 6)
      .map(({ secret: key }) =>
        TailReader.open(
          { privateUrl: server.botUrl, key },
          `/portal${path.replace('portal', 'tail')}`,
        ),
      ),
  )
  assert.equal(tails.filter(({ status }) => status === 200).length, 4)
  assert.equal(tails.filter(({ status }) => status === 429).length, 1)
  const calls = Array.from({ length: 90 }, (_, nth) =>
    links[1 + (nth % 19)]!.call('GET', '/history'),
  )
  const statuses = new Set((await Promise.all(calls)).map(({ status }) => status))
  assert.deepEqual(statuses, new Set([200, 429]))
  const { botId: tested } = await server.register(freshBotOf(1))
  const tester = await BotOwner.of(server, tested)
  const pushes = Array.from({ length: portalChangesBurst + 5 }, () =>
    tester.call('POST', '/test-update'),
  )
  const pushed = (await Promise.all(pushes)).filter(({ status }) => status === 200)
  assert.equal(pushed.length, portalChangesBurst)
  assert.equal((await tester.call('GET', '')).body.pending, portalChangesBurst)
  assert.deepEqual((await server.admin('DELETE', path)).body, { removed: portalLinksMax - 1 })
  await until(() => tails.every(({ isEnded }) => isEnded))
})

test('a link is refused that asks for a wrong time, right or origin', async () => {
  const server = await publicServer()
  const { botId } = await server.register(freshBotOf(0))
  for (const wrong of [
    {},
    { ttl: 0 },
    { ttl: 30 * 86_400 + 1 },
    { ttl: 1.5 },
    { ttl: 60, can: [] },
    { ttl: 60, can: ['all'] },
    { ttl: 60, can: ['look', 'look'] },
    { ttl: 60, other: 1 },
    ...[
      '',
      '*',
      'null',
      'http://platform.example',
      'https://*.example',
      'https://platform.example/',
      'https://platform.example:443',
      'https://Platform.example',
      'https://a:b@platform.example',
      "https://a;script-src *'",
      'https://a https://b',
      'https://a..b',
      'https://a:0',
      'https://a:99999',
      `https://${'a'.repeat(300)}`,
    ].map((origin) => ({ ttl: 60, origin })),
  ]) {
    const { status, text } = await server.admin('POST', `/v1/bots/${botId}/portal`, wrong)
    assert.equal(status, 400, `${JSON.stringify(wrong)}: ${text}`)
  }
})

test('links outlive a kill and an import, their secrets are nowhere to be read, and the health is in getWebhookInfo', async (t) => {
  const flags = [`--portal=${base}`, '--health-in-webhook-info', '--log-level=trace']
  const server = await startServer(t, { workers: 2, flags })
  const [bot, other] = [await server.register(freshBotOf(0)), await server.register(freshBotOf(1))]
  const owners = await Promise.all(
    [bot, other].map(({ botId }) => BotOwner.of(server, botId, { origin: 'https://a.example' })),
  )
  const revoked = await BotOwner.of(server, bot.botId)
  await revoked.revoke()
  const texts: string[] = []
  for (const { secret, botId } of owners) {
    for (const at of [server.privateUrl, server.botUrl]) {
      for (const path of [`/portal/v1/bots/${botId}`, `/v1/bots/${botId}`, `/portal/${secret}`]) {
        const headers = { authorization: `Bearer ${secret}`, 'x-real-ip': freshAddress() }
        texts.push((await send({ method: 'GET', url: at + path, headers })).text)
      }
    }
  }
  for (const path of ['/metrics', '/v1/audit', `/v1/bots/${bot.botId}/portal`]) {
    texts.push((await server.admin('GET', path)).text)
  }
  const where = ['--url', server.privateUrl, '--key-file', join(server.dir, 'admin.key')]
  const directory = temporaryDirectory(t)
  const file = join(directory, 'backup')
  await outputOf(['export', file, ...where])
  const info = await server.call(bot.token, 'getWebhookInfo')
  assert.match(info.body.result.health, /^no poll since the start|^nobody polls/)
  await server.kill()
  const files = [file, ...filesIn(server.dir)]
  texts.push(server.output(), ...files.map((each) => readFileSync(each, 'latin1')))
  for (const { secret } of [...owners, revoked]) {
    for (const text of texts) assert(!text.includes(secret.slice(-43)))
  }
  const again = await server.restart()
  const dir = join(directory, 'imported')
  await outputOf(['import', file, '--dir', dir, '--shards', '2'])
  const imported = await startServer(t, { workers: 2, dir, flags })
  for (const { botUrl, privateUrl } of [again, imported]) {
    for (const at of [botUrl, privateUrl]) {
      for (const owner of owners)
        assert.equal((await owner.call('GET', '', undefined, at)).status, 200)
      assert.equal((await revoked.call('GET', '', undefined, at)).status, 401)
    }
  }
})

test('the command line makes, lists and revokes links', async () => {
  const server = await publicServer()
  const { botId } = await server.register(freshBotOf(0))
  const where = ['--url', server.privateUrl, '--key-file', join(server.dir, 'admin.key')]
  const portal = (...words: readonly string[]): Promise<string> =>
    outputOf(['portal', ...words, ...where])
  const made = await portal('create', String(botId), '--ttl', '60', '--can', 'look,test')
  const { pathname, hash } = new URL(made.trim())
  assert.equal(pathname, '/portal/')
  const owner = { authorization: `Bearer ${hash.slice(1)}` }
  const url = `${server.botUrl}/portal/v1/bots/${botId}`
  const shown = await send({ method: 'GET', url, headers: owner })
  assert.equal(shown.headers['postbote-link-can'], 'look,test')
  assert.match(String(shown.headers['postbote-link-expires']), /^\d{10}$/)
  const listed = await portal('list', String(botId))
  assert.match(listed, /look,test/)
  assert(!listed.includes(hash.slice(-43)))
  assert.equal((await portal('revoke', String(botId), '--all')).trim(), 'revoked 1')
  assert.equal((await portal('list', String(botId))).trim(), 'no links')
})
