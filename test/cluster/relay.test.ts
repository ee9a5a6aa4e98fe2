/** Relays that take the updates of bots from another bot API server, on a server with two workers. */
import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { get } from 'node:http'
import { join } from 'node:path'
import { text as textOf } from 'node:stream/consumers'
import { test } from 'node:test'
import { relayAnswerBytesMax } from '../../src/features/relay/limits.ts'
import { type Instead, startSmallOrigin } from '../support/network/small-origin.ts'
import { filesIn } from '../support/kit/files-in.ts'
import { temporaryDirectory } from '../support/kit/temporary-directory.ts'
import { until } from '../support/kit/until.ts'
import { freshBotOf } from '../support/server/bot-of.ts'
import { type RegisteredBot, type Server, startServer } from '../support/server/server.ts'
import { shared } from '../support/server/shared-server.ts'
import { outputOf } from '../support/programs/postbote.ts'

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

test('a bot gets the updates of its origin once and in order, after a kill and a reload, too', async (t) => {
  const origin = await startSmallOrigin(t)
  const flags = ['--local', `--relay-from=${origin.url}`]
  let server = await startServer(t, { workers: 1, flags })
  const bot = await server.register()
  const path = `/v1/bots/${bot.botId}/relay`
  origin.add(message('a'), message('b'))
  const set = await server.admin('PUT', path, { from: origin.url, token })
  assert.equal(set.status, 200, set.text)
  await until(() => origin.pending.length === 0)
  await server.kill()
  server = await server.restart({ workers: 1, flags })
  origin.add(message('c'))
  await until(() => origin.pending.length === 0)
  await outputOf(['reload', `--dir=${server.dir}`])
  origin.add(message('d'))
  await until(() => origin.pending.length === 0)
  assert.deepEqual(await textsOf(server, bot, 4), ['a', 'b', 'c', 'd'])
  // The worker that leaves and the one that comes are never taken for two pollers.
  assert.doesNotMatch(eventsOf(server), /relay\.paused/)
  const { body } = await server.admin('GET', path)
  assert.equal(body.state, 'polling')
  assert.equal(body.relayed, 1)
  const [first] = origin.polls
  assert.equal(first?.path, `/bot${token}/getUpdates`)
  assert.equal(first?.timeout, 50)
  assert(first?.allowed_updates.includes('message'))
})

test('an update that is larger than an answer may be is skipped, also if the server is killed there', async (t) => {
  const origin = await startSmallOrigin(t)
  const flags = ['--local', `--relay-from=${origin.url}`]
  let server = await startServer(t, { workers: 1, flags })
  const bot = await server.register()
  const path = `/v1/bots/${bot.botId}/relay`
  const killed: string[] = []
  const killAt = (boundary: string): void => {
    if (killed.includes(boundary)) return
    killed.push(boundary)
    void server.kill()
  }
  origin.answerInstead(({ limit, offset = 0 }, response) => {
    if (limit === 1 && offset === 1_001) response.once('finish', () => killAt('answered'))
    if (offset === 1_002) killAt('confirm')
    return false
  })
  origin.add(message('a'), message('x'.repeat(relayAnswerBytesMax)), message('b'))
  assert.equal((await server.admin('PUT', path, { from: origin.url, token })).status, 200)
  for (const boundary of ['answered', 'confirm']) {
    await until(() => killed.includes(boundary))
    server = await server.restart({ workers: 1, flags })
  }
  await until(() => origin.pending.length === 0)
  assert.deepEqual(await textsOf(server, bot, 2), ['a', 'b'])
  assert.equal((await server.admin('GET', path)).body.state, 'polling')
  const kept = filesIn(join(server.dir, 'relay-refused')).map((each) => readFileSync(each, 'utf8'))
  assert.match(
    kept.join(''),
    /"update_id":1001,"reason":"Update too large: got more than \d{7} bytes"/,
  )
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

/** The events that the server keeps. */
function eventsOf(server: Server): string {
  const file = join(server.dir, 'events', '0.ndjson')
  return existsSync(file) ? readFileSync(file, 'utf8') : ''
}

/** The origin has answered. */
function send(_response: object): true {
  return true
}

test('what an origin answers in place of updates pauses the relay with a sentence', async () => {
  const { origin, server } = await started()
  const { botId } = await server.register(freshBotOf(0))
  const path = `/v1/bots/${botId}/relay`
  const webhook = "Conflict: can't use getUpdates method while webhook is active"
  const answers: (readonly [RegExp, Instead])[] = [
    [/^The origin refuses the token/, (_, response) => send(response.writeHead(401).end('{}'))],
    [
      /^A webhook is set/,
      (_, response) => send(response.writeHead(409).end(JSON.stringify({ description: webhook }))),
    ],
    [
      /redirects \(302\)/,
      (_, response) => send(response.writeHead(302, { location: `${origin.url}/elsewhere` }).end()),
    ],
    [/no answer of getUpdates/, (_, response) => send(response.writeHead(200).end('{"ok":true,'))],
    [/less often/, (_, response) => send(response.writeHead(429, { 'retry-after': '900' }).end())],
  ]
  const large = Buffer.alloc(9 * 1024 * 1024, ' ')
  answers.push([/more than \d+ bytes/, (_, response) => send(response.end(large))])
  for (const [reason, instead] of answers) {
    origin.answerInstead(instead)
    const { status, text } = await server.admin('PUT', path, { from: origin.url, token })
    assert.equal(status, 200, text)
    let shown: { readonly state: string; readonly reason: string } | undefined
    await until(async () => {
      shown = (await server.admin('GET', `/v1/bots/${botId}`)).body.relay
      return shown?.state === 'paused'
    })
    assert.match(shown?.reason ?? '', reason)
  }
  assert(origin.polls.every((poll) => poll.path.endsWith('/getUpdates')))
  await until(() => eventsOf(server).includes('"type":"relay.paused"'))
  origin.answerInstead(undefined)
  await server.admin('DELETE', path)
})

test('the command line sets, shows and removes a relay, and reads its token from a file or standard input', async (t) => {
  const { origin, server } = await started()
  const { botId } = await server.register(freshBotOf(1))
  const file = join(temporaryDirectory(t), 'token')
  writeFileSync(file, `${token}\n`)
  const at = [`--url=${server.privateUrl}`, `--key-file=${join(server.dir, 'admin.key')}`]
  const relay = (command: string, ...more: readonly string[]): Promise<string> =>
    outputOf(['relay', command, `${botId}`, ...at, ...more])
  const from = `--from=${origin.url}`
  assert.match(await relay('set', from, `--token-file=${file}`), /state\s+polling/)
  await until(() => origin.polls.some((poll) => poll.path === `/bot${token}/getUpdates`))
  assert.match(await relay('set', from, '--same-token'), /state\s+polling/)
  const both = ['--same-token', `--token-file=${file}`]
  await assert.rejects(relay('set', from, ...both), /--same-token: expected no --token-file/)
  assert.match(await relay('show'), /state\s+polling/)
  assert.match(await relay('remove'), new RegExp(`removed the relay of bot ${botId}`))
  await assert.rejects(relay('set', from, '--same-token'), /token: expected/)
})

test('an address that webhooks may not have is not connected to', async (t) => {
  const origin = await startSmallOrigin(t)
  const url = origin.url.replace('127.0.0.1', 'localhost')
  const flags = ['--local', '--block-cidr=127.0.0.0/8,::1/128', `--relay-from=${url}`]
  const server = await startServer(t, { flags })
  const { botId } = await server.register()
  await server.admin('PUT', `/v1/bots/${botId}/relay`, { from: url, token })
  let reason = ''
  await until(async () => {
    reason = (await server.admin('GET', `/v1/bots/${botId}/relay`)).body.reason ?? ''
    return reason !== ''
  })
  assert.match(reason, /reserved/)
  assert.equal(origin.polls.length, 0)
})

test('a bot with the token of its origin polls here, and sends and gets files through the upstream server', async (t) => {
  const origin = await startSmallOrigin(t)
  const flags = ['--local', '--foreign-tokens', '--log-level=trace']
  const both = [`--relay-from=${origin.url}`, `--upstream=${origin.url}`]
  let server = await startServer(t, { workers: 2, flags: [...flags, ...both] })
  const names = { first_name: 'A', username: 'a_bot' }
  assert.equal((await server.admin('POST', '/v1/bots', { ...names, token })).status, 200)
  const botId = Number.parseInt(token, 10)
  const path = `/v1/bots/${botId}/relay`
  origin.add(message('hello'), { guest_message: { text: 'a secret text' } })
  await server.admin('PUT', path, { from: origin.url, token })
  assert.deepEqual(await textsOf(server, { botId, token }, 1), ['hello'])
  await until(() => origin.pending.length === 0)
  const sent = await server.call(token, 'sendMessage', { chat_id: 5, text: 'hi' })
  assert.equal(sent.body.result.path, `/bot${token}/sendMessage`)
  const file: string = await new Promise((resolve, reject) => {
    get(`${server.botUrl}/file/bot${token}/photos/file_1.jpg`, (response) => {
      textOf(response).then(resolve, reject)
    }).on('error', reject)
  })
  assert.equal(JSON.parse(file).result.path, `/file/bot${token}/photos/file_1.jpg`)

  const refused = join(server.dir, 'relay-refused')
  const kept = (): string =>
    readdirSync(refused)
      .map((name) => readFileSync(join(refused, name), 'utf8'))
      .join('')
  assert.match(kept(), /a secret text/)
  await server.admin('DELETE', `/v1/bots/${botId}/updates?ordering_key=a`)
  assert.equal(kept(), '')
  const exported = await server.admin('GET', `/v1/bots/${botId}`)
  const metrics = await server.admin('GET', '/metrics')
  for (const { text } of [exported, metrics]) assert(!text.includes(secret), text)
  await until(() => eventsOf(server).includes('"type":"relay.refused"'))
  assert(!eventsOf(server).includes(secret))
  assert.match(metrics.text, /relay_updates_refused_total 1/)

  await server.stop()
  assert(!server.output().includes(secret))
  // Another admin key cannot read the token, and another list does not permit the origin.
  writeFileSync(join(server.dir, 'admin.key'), 'another-admin-key-0123456789')
  server = await server.restart({ workers: 2, flags: [...flags, ...both] })
  await until(async () => /admin key/.test((await server.admin('GET', path)).body.reason))
  assert.equal((await server.admin('PUT', path, { from: origin.url })).status, 200)
  await server.admin('PUT', path, { from: origin.url, token })
  await until(async () => (await server.admin('GET', path)).body.state === 'polling')
  server = await server.restart({ workers: 2, flags })
  // Until the relay begins, its reason is that the shard was just opened.
  await until(async () => /--relay-from/.test((await server.admin('GET', path)).body.reason))
  assert.equal((await server.admin('DELETE', path)).status, 200)
})
