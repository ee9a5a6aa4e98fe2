/**
 * The owner of one bot, who has a link to it and wants another one: each call of the table of operations and each odd way to
 * name a bot, at both listeners of a server with two workers. Every attack comes from an address of its own, so that none is
 * refused only because an earlier one was.
 *
 * `scripts/compare-refusals` runs the last test with 100,000 guesses.
 */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { Agent } from 'node:http'
import { test } from 'node:test'
import { apiOperations } from '../../src/modules/api-operations.ts'
import { freshBotOf } from '../support/server/bot-of.ts'
import { BotOwner } from '../support/server/bot-owner.ts'
import { compareRefusals } from '../support/server/compare-refusals.ts'
import { freshAddress } from '../support/server/fresh-address.ts'
import { RawConnection } from '../support/producers/raw-http.ts'
import { type Answer, type Server, send, startServer } from '../support/server/server.ts'
import { shared } from '../support/server/shared-server.ts'

const started = shared((owner) =>
  startServer(owner, {
    workers: 2,
    flags: ['--portal=https://bots.example.com', '--retain=1h', '--log-level=trace'],
  }),
)
/** What only the victim's bot has. */
const victimText = 'only for the victim 5d41402a'

interface Attack {
  readonly method: string
  readonly path: string
  readonly headers?: Readonly<Record<string, string | readonly string[]>>
  readonly body?: string
  /** Whether the call may succeed, because it is one about the attacker's own bot. */
  readonly isOwn?: true
}

/** The calls of the table, filled with a bot. */
function callsAbout(botId: number, updateId: number): readonly Attack[] {
  return apiOperations.flatMap(({ method, path }) => {
    const filled = path
      .replace(':id', String(botId))
      .replace(':update_id', String(updateId))
      .replace(':job_id', '1')
      .replace(':key_id', '0123456789abcdef')
      .replace(':link_id', '0123456789abcdef')
      .replace(':shard', '0')
    const body = method === 'GET' || method === 'HEAD' ? {} : { body: '{}' }
    return [{ method, path: filled, ...body }]
  })
}

function oddPaths(own: number, other: number): readonly string[] {
  const base = `/portal/v1/bots/${own}`
  return [
    `/portal/v1/bots/${own}/../${other}`,
    `/portal/v1/bots/${own}/..%2f${other}`,
    `/portal/v1/bots/${own}%2f..%2f${other}`,
    `/portal/v1/bots/${own}/%2e%2e/${other}`,
    `/portal/v1/bots/${own}/%252e%252e/${other}`,
    `/portal/v1/bots/${own}\\..\\${other}`,
    `/portal/v1/bots/0${other}`,
    `/portal/v1/bots/${other}.0`,
    `/portal/v1/bots/%30${other}`,
    `/portal/v1/bots/${other}%00`,
    `/portal/v1/bots/${other};${own}`,
    `/portal/v1/bots/${own},${other}`,
    `/portal/v1/bots/${own}/${other}`,
    `/portal//v1/bots/${other}`,
    `/portal/../v1/bots/${other}`,
    `/portal/%2e%2e/v1/bots/${other}`,
    `/portal/portal/v1/bots/${other}`,
    `/portal/v1/bots/${String(other).replace(/^./, (digit) => `%3${digit}`)}`,
    `/PORTAL/v1/bots/${other}`,
    `http://127.0.0.1/portal/v1/bots/${other}`,
    `/portal/v1/bots`,
    `/portal/v1/bots/?id=${other}`,
    `/portal/v1/summary`,
    `/portal/metrics`,
    `/portal/v1/events`,
    `/portal/v1/keys`,
    `${base}?id=${other}`,
    `${base}?bot_id=${other}&test=true`,
    `${base}/attempts?id=${other}`,
    `${base}/updates?bot=${other}`,
    `${base}#/../${other}`,
  ]
}

async function attack(
  at: string,
  { method, path, headers, body }: Attack,
  secret: string,
): Promise<Answer> {
  const given = { authorization: `Bearer ${secret}`, 'x-real-ip': freshAddress(), ...headers }
  const connection = RawConnection.to(at)
  const head = Object.entries({ host: '127.0.0.1', connection: 'close', ...given })
    .flatMap(([name, value]) => [value ?? []].flat().map((each) => `${name}: ${each}\r\n`))
    .join('')
  const length = body === undefined ? '' : `content-length: ${Buffer.byteLength(body)}\r\n`
  const received: Buffer[] = []
  connection.socket.on('data', (bytes: Buffer) => received.push(bytes))
  connection.write(`${method} ${path} HTTP/1.1\r\n${head}${length}\r\n${body ?? ''}`)
  // A tail of the own bot would not end by itself.
  const timer = setTimeout(() => connection.socket.destroy(), 5_000)
  await connection.ended()
  clearTimeout(timer)
  const text = Buffer.concat(received).toString()
  return { status: Number(text.split(' ')[1]), headers: {}, text, body: undefined }
}

async function victimOf(server: Server, worker: number) {
  const { botId, token } = await server.register(freshBotOf(worker))
  const updateId = await server.push(botId, { message: { text: victimText } })
  assert(updateId !== undefined)
  const state = async (): Promise<string> => {
    const [bot, updates, links] = await Promise.all(
      ['', '/updates', '/portal'].map((path) => server.admin('GET', `/v1/bots/${botId}${path}`)),
    )
    return JSON.stringify([bot!.body, updates!.body, links!.body], (name, value: unknown) =>
      // These count seconds.
      name === 'oldest_age' || name === 'health_reason' ? undefined : value,
    )
  }
  const owner = await BotOwner.of(server, botId)
  return { botId, token, updateId, owner, state, before: await state() }
}

test('no call of the table, spelled in no way, gives the owner of a bot anything of another bot', async () => {
  const server = await started()
  let count = 0
  for (const worker of [0, 1]) {
    const victim = await victimOf(server, worker)
    const { botId: own } = await server.register(freshBotOf(0))
    const { secret } = await BotOwner.of(server, own)
    const onOther = callsAbout(victim.botId, victim.updateId)
    const attacks: readonly Attack[] = [
      ...onOther,
      ...onOther.map((each) => ({ ...each, path: `${each.path}?test=true` })),
      ...onOther.map((each) => ({ ...each, path: `/portal${each.path}` })),
      ...onOther.map((each) => ({ ...each, path: `/portal${each.path}?test=true` })),
      ...callsAbout(own, 1),
      ...oddPaths(own, victim.botId).map((path) => ({ method: 'GET', path })),
      ...['X-Original-URL', 'X-Rewrite-URL', 'X-Forwarded-Prefix', 'Referer'].map((name) => ({
        method: 'GET',
        path: `/portal/v1/bots/${own}`,
        headers: { [name]: `/portal/v1/bots/${victim.botId}` },
        isOwn: true as const,
      })),
      ...['Postbote-Worker', 'Postbote-Dashboard', 'X-Bot-Id'].map((name) => ({
        method: 'GET',
        path: `/portal/v1/bots/${victim.botId}`,
        headers: { [name]: String(victim.botId) },
      })),
      {
        method: 'GET',
        path: `/portal/v1/bots/${victim.botId}`,
        headers: { 'X-HTTP-Method-Override': 'DELETE' },
      },
      {
        method: 'GET',
        path: `/portal/v1/bots/${victim.botId}`,
        headers: { authorization: [`Bearer ${secret}`, `Bearer ${secret}`] },
      },
      {
        method: 'GET',
        path: `/portal/v1/bots/${victim.botId}`,
        headers: { authorization: `Bearer ${secret.replace(String(own), String(victim.botId))}` },
      },
      {
        method: 'GET',
        path: `/portal/v1/bots/${victim.botId}`,
        headers: { cookie: `postbote_session=${secret}` },
      },
      ...[{ id: victim.botId }, { bot_id: victim.botId }, { bot: victim.botId }]
        .flatMap((body) => [
          { path: '/dead-letters/replay', body: JSON.stringify(body) },
          { path: '/updates/replay', body: JSON.stringify({ rate: 1, ...body }) },
          { path: `/updates/${victim.updateId}/replay`, body: JSON.stringify(body) },
        ])
        .map(({ path, body }) => ({
          method: 'POST',
          path: `/portal/v1/bots/${own}${path}`,
          body,
          isOwn: true as const,
        })),
      ...['getUpdates', 'getMe', 'getWebhookInfo', 'deleteWebhook'].flatMap((method) => [
        { method: 'GET', path: `/bot${secret}/${method}` },
        { method: 'GET', path: `/bot${victim.botId}:${secret}/${method}` },
        { method: 'GET', path: `/bot${victim.botId}:${secret.slice(-43)}/test/${method}` },
      ]),
    ]
    for (const at of [server.privateUrl, server.botUrl]) {
      const answers = await Promise.all(
        attacks.map(async (each) => ({ each, answer: await attack(at, each, secret) })),
      )
      for (const { each, answer } of answers) {
        const shown = `${at} ${each.method} ${each.path}: ${answer.text}`
        assert(!answer.text.includes(victimText), shown)
        const isOpen = /^\/(?:healthz|readyz)?(?:\?|$)/.test(each.path)
        const isAboutOwn = each.isOwn === true || answer.text.includes(`"bot_id":${own},`)
        if (isOpen || isAboutOwn) assert(!answer.text.includes(`"bot_id":${victim.botId}`), shown)
        else assert([400, 401, 403, 404, 405, 429].includes(answer.status), shown)
      }
      count += attacks.length
    }
    assert.equal(await victim.state(), victim.before)
  }
  assert(count >= 60 * 4, `${count}`)
})

test('a call on the connection of another owner, before or after theirs, is judged by its own link', async () => {
  const server = await started()
  const victim = await victimOf(server, 1)
  const { botId: own } = await server.register(freshBotOf(0))
  const { secret } = await BotOwner.of(server, own)
  const line = (key: string | undefined): string =>
    [
      `GET /portal/v1/bots/${victim.botId} HTTP/1.1`,
      'host: 127.0.0.1',
      `x-real-ip: ${freshAddress()}`,
      ...(key === undefined ? [] : [`authorization: Bearer ${key}`]),
      '\r\n',
    ].join('\r\n')
  for (const at of [server.privateUrl, server.botUrl]) {
    const pipelined = RawConnection.to(at)
    const keys = [secret, victim.owner.secret, undefined, victim.owner.secret, secret]
    pipelined.write(keys.map(line).join(''))
    const statuses: number[] = []
    for (const _ of keys) statuses.push((await pipelined.answer()).status)
    assert.deepEqual(statuses, [401, 200, 401, 200, 401])
    const kept = RawConnection.to(at)
    for (const [key, status] of [
      [victim.owner.secret, 200],
      [secret, 401],
      [undefined, 401],
    ] as const) {
      kept.write(line(key))
      assert.equal((await kept.answer()).status, status)
    }
    for (const { socket } of [pipelined, kept]) socket.destroy()
  }
})

test('a link is no key of the private API, and no key, token or session is a link', async () => {
  const server = await started()
  const { botId, token } = await server.register(freshBotOf(1))
  const { secret } = await BotOwner.of(server, botId)
  const made = await server.admin('POST', '/v1/keys', { name: 'a key', scopes: ['all'] })
  for (const at of [server.privateUrl, server.botUrl]) {
    const keys = [server.key, made.body.key, token, token.split(':')[1], `pbo_${botId}_${token}`]
    const answers = await Promise.all(
      keys.map((key) => attack(at, { method: 'GET', path: `/portal/v1/bots/${botId}` }, key)),
    )
    assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([401]))
  }
  const login = { method: 'POST', url: `${server.privateUrl}/v1/session` }
  const refused = await send({ ...login, headers: { authorization: `Bearer ${secret}` } })
  assert.equal(refused.status, 401)
  assert.equal(refused.headers['set-cookie'], undefined)
  const session = await send({ ...login, headers: { authorization: `Bearer ${server.key}` } })
  const cookie = String(session.headers['set-cookie']).split(';')[0] ?? ''
  const url = `${server.privateUrl}/portal/v1/bots/${botId}`
  const headers = { cookie, 'x-real-ip': freshAddress() }
  assert.equal((await send({ method: 'GET', url, headers })).status, 401)
})

test('wrong secrets of known and unknown bots get one refusal, and cost the client its slots', async () => {
  const server = await started()
  const { botId } = await server.register(freshBotOf(1))
  const { secret } = await BotOwner.of(server, botId)
  const revoked = await BotOwner.of(server, botId)
  await revoked.revoke()
  const unknown = freshBotOf(1)
  const agent = new Agent({ keepAlive: true })
  const guessAt = async (at: string): Promise<void> => {
    const guess = (id: number, key: string, address = freshAddress()): Promise<Answer> =>
      send({
        method: 'GET',
        url: `${at}/portal/v1/bots/${id}`,
        headers: { authorization: `Bearer ${key}`, 'x-real-ip': address },
        agent,
      })
    const wrong = (id: number): string => `pbo_${id}_${secret.slice(-43, -4)}AAAA`
    const texts = await Promise.all([
      guess(botId, wrong(botId)),
      guess(unknown, wrong(unknown)),
      guess(botId, revoked.secret),
      guess(botId, 'nothing'),
      guess(unknown, secret),
    ])
    assert.equal(new Set(texts.map(({ text }) => text)).size, 1)
    assert.equal(texts[0].body.error.code, 'BAD_LINK')
    const address = freshAddress()
    const many = Array.from({ length: 25 }, () => guess(unknown, wrong(unknown), address))
    const statuses = (await Promise.all(many)).map(({ status }) => status)
    assert.equal(statuses.filter((status) => status === 401).length, 20, statuses.join())
    assert.equal(statuses.filter((status) => status === 429).length, 5)
    // The right one works nevertheless.
    assert.equal((await guess(botId, secret, address)).status, 200)
  }
  await Promise.all([server.privateUrl, server.botUrl].map(guessAt))
  agent.destroy()
})

test('the time of a refusal of a link does not say whether the bot exists', async (t) => {
  const server = await started()
  await compareRefusals(t, {
    server,
    register: async (botId) => {
      await server.register(botId)
      await BotOwner.of(server, botId)
    },
    guess: (botId) => {
      const secret = `pbo_${botId}_${randomBytes(32).toString('base64url')}`
      const headers = { authorization: `Bearer ${secret}` }
      return { path: `/portal/v1/bots/${botId}`, headers }
    },
  })
})
