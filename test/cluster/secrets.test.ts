/**
 * Every route with tokens, webhook secrets and keys, right and wrong, complete and broken, at the most verbose log level.
 * None of them may appear in the output of the processes, in responses (except the one with a new token), or in command
 * lines; tokens may not appear on disk either.
 */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import { connect } from 'node:net'
import { type TestContext, test } from 'node:test'
import { readFilesIn } from '../support/kit/files-in.ts'
import { type Server, startServer } from '../support/server/server.ts'
import { until } from '../support/kit/until.ts'

const webhookSecret = 'webhook-secret-4f1b9a'
const badSecret = 'webhook secret with a blank 77c2'
const urlPassword = 'userinfo-pass-93d1'
/** Many bots put their token here. */
const urlPath = 'url-path-e0c4'
const proxyPassword = 'proxy-pass-5e80'
const wrongKey = 'wrong-admin-key-0123456789abcdef-21ab'

const botMethods = [
  'getUpdates?timeout=0',
  'getUpdates?offset=-1&limit=x',
  'getMe',
  'getWebhookInfo',
  'setWebhook',
  'deleteWebhook',
  'logOut',
  'close',
  'sendMessage?chat_id=1',
  '',
  '?',
  'test/getUpdates',
  'test/getMe',
  'getMe/',
  'getMe/more',
]

test('no token, secret or key is logged, returned or shown to other users of the machine', async (t) => {
  const server = await startServer(t, {
    workers: 2,
    flags: ['--local', '--log-level=trace', '--webhook-verify-timeout=0.5'],
  })
  const bots = [await server.register(), await server.register()]
  const [first, second] = bots
  assert(first !== undefined && second !== undefined)
  const renewed = await server.admin('POST', `/v1/bots/${second.botId}/token`, { overlap: 60 })
  const removed = await server.register()
  await server.admin('DELETE', `/v1/bots/${removed.botId}`)

  const tokens = [first.token, second.token, renewed.body.token, removed.token]
  const keys = await keysOf(server)
  const mistyped = first.token.slice(0, -1) + (first.token.endsWith('A') ? 'B' : 'A')
  const odd = [mistyped, `0${first.token}`, `x${first.token}`, `${first.token}${'y'.repeat(60)}`]
  const encoded = first.token.replace(':', '%3A')
  const requests = [
    ...[...tokens, ...odd, encoded, first.token.replace(':', '%zz')].flatMap(botRequests),
    ...tokens.flatMap(brokenRequests),
    ...tokens.flatMap((token) => privateRequests(server, token)),
    ...keys.flatMap((key) => [...privateRequests(server, key), ...keyRequests(key)]),
  ]
  const answers = await exchangeAll(server, requests)
  answers.push(...(await useWebhooks(t, server, first.token)))
  const hidden = [
    ...[...tokens, mistyped].map((token) => token.split(':')[1] ?? ''),
    ...keys.map((key) => key.slice('pbk_0123456789abcdef_'.length)),
  ]
  const secrets = [...hidden.map((secret) => secret.slice(0, 12)), wrongKey, server.key]
  secrets.push(webhookSecret, badSecret, urlPassword, urlPath)

  // A worker that dies during a request may log something.
  process.kill(server.workerPid(), 'SIGKILL')
  answers.push(...(await exchangeAll(server, tokens.flatMap(botRequests))))
  await until(() => server.workerPids().length === 2)
  const commandLines = server.pids().map(commandLineOf)
  assert.equal(commandLines.length, 3)
  await server.stop()

  assert(requests.length > 200)
  // Requests that the client breaks off have no response; most have one.
  assert(answers.filter((answer) => answer.startsWith('HTTP/1.1 ')).length > 200)
  assert.match(server.output(), /"msg":"ready"/)
  for (const secret of secrets) {
    assertAbsent(secret, server.output(), 'the output')
    for (const answer of answers) assertAbsent(secret, answer, 'an answer')
    for (const commandLine of commandLines) assertAbsent(secret, commandLine, 'a command line')
  }
  const files = readFilesIn(server.dir)
  for (const secret of secrets.filter((each) => hidden.some((token) => token.startsWith(each)))) {
    for (const [file, bytes] of files) assertAbsent(secret, bytes.toString('latin1'), file)
  }
})

test('the proxy password in the environment is not logged, even if the option is refused', async (t) => {
  const good = { POSTBOTE_PROXY: `http://user:${proxyPassword}@127.0.0.1:9` }
  const server = await startServer(t, {
    workers: 2,
    env: good,
    flags: ['--local', '--log-level=trace'],
  })
  const { token } = await server.register()
  const { text } = await server.call(token, 'setWebhook', { url: 'https://localhost/x' })
  await server.stop()
  for (const place of [server.output(), text]) assertAbsent(proxyPassword, place, 'the output')

  const bad = { POSTBOTE_PROXY: `ftp://user:${proxyPassword}@127.0.0.1:9` }
  const refused: unknown = await startServer(t, { workers: 2, env: bad }).catch(
    (error: unknown) => error,
  )
  assert(refused instanceof Error)
  assert.match(refused.message, /POSTBOTE_PROXY: expected/)
  assertAbsent(proxyPassword, refused.message, 'the refusal')
})

interface RawRequest {
  readonly listener: 'bot' | 'private'
  readonly bytes: string
}

function botRequests(token: string): RawRequest[] {
  const json = JSON.stringify({ url: `ftp://u:${urlPassword}@x/${token}`, secret_token: badSecret })
  return [
    ...botMethods.map((method) => http('bot', `GET /bot${token}/${method}`)),
    ...[
      '/',
      `/file/bot${token}/x`,
      `/bot${token}`,
      `/%62ot${token}/getMe`,
      `/v1/bots/${token}`,
    ].map((path) => http('bot', `GET ${path}`)),
    http('bot', `POST /bot${token}/setWebhook`, { body: json, type: 'application/json' }),
    http('bot', `POST /bot${token}/getMe`, { body: `{"a":"${token}"`, type: 'application/json' }),
    http('bot', `POST /bot${token}/getMe`, { body: token, type: 'multipart/form-data' }),
    http('bot', `DELETE /bot${token}/getMe`),
    http('bot', `POST /bot${token}/getMe`, { body: `token=${token}` }, [`X-Token: ${token}`]),
  ]
}

/** Requests that an HTTP parser refuses or never completes. */
function brokenRequests(token: string): RawRequest[] {
  const broken = [
    `GET /bot${token}/getMe`,
    `GET /bot${token}/getMe HTTP/9.9\r\nHost: x\r\n\r\n`,
    `GE T /bot${token}/getMe HTTP/1.1\r\n\r\n`,
    `GET /bot${token}/get Me HTTP/1.1\r\n\r\n`,
    `/bot${token}/getMe\r\n\r\n`,
    `GET /bot${token}/getMe HTTP/1.1\r\nHost: x\r\nX-${token}\r\n\r\n`,
    `GET /bot${token}/getMe HTTP/1.1\r\nHost: x\r\nX: ${'y'.repeat(70_000)}\r\n\r\n`,
    `GET /bot${token}/${'y'.repeat(10_000)} HTTP/1.1\r\nHost: x\r\n\r\n`,
    `POST /bot${token}/getMe HTTP/1.1\r\nHost: x\r\nContent-Length: ${token}\r\n\r\n`,
    `POST /bot${token}/getMe HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n${token}\r\n`,
    `POST /bot${token}/getMe HTTP/1.1\r\nHost: x\r\nContent-Encoding: gzip\r\nContent-Length: 46\r\n\r\n${token}`,
    `POST /bot${token}/getMe HTTP/1.1\r\nHost: x\r\nContent-Length: 9000000\r\n\r\n${token}`,
  ]
  return broken.flatMap((bytes) => [
    { listener: 'bot', bytes },
    { listener: 'private', bytes },
  ])
}

function privateRequests(server: Server, token: string): RawRequest[] {
  const id = token.split(':')[0] ?? ''
  const right = `Authorization: Bearer ${server.key}`
  // Accepted updates are stored and delivered unchanged, so only refused ones contain the token.
  const update = JSON.stringify({ message: { text: 'hello' } })
  const pair = `{"bot_id":${id},"ordering_key":"k"}\n${update}\n`
  const lines: [string, string][] = [
    ['GET /', ''],
    ['GET /healthz', ''],
    ['GET /readyz', ''],
    ['GET /metrics', ''],
    ['GET /v1/bots', ''],
    ['GET /v1/bots?limit=x', ''],
    [`GET /v1/bots?sort=pending&prefix=${id}`, ''],
    [`GET /v1/bots?prefix=${token}`, ''],
    [`GET /v1/bots?state=${token}`, ''],
    [`GET /v1/bots?${token}=1`, ''],
    ['GET /v1/summary', ''],
    [`GET /v1/bots/${id}`, ''],
    [`GET /v1/bots/${token}`, ''],
    [`GET /v1/bots/${id}/attempts`, ''],
    [`GET /v1/bots/${id}/attempts?${token}=1`, ''],
    [`GET /v1/bots/${token}/limits`, ''],
    [`PUT /v1/bots/${id}/limits`, `{"deliveries_per_second":"${token}"}`],
    [`PUT /v1/bots/${id}/limits`, `{"${token}":5}`],
    [`POST /v1/bots/${token}/pause`, ''],
    [`POST /v1/bots/${id}/resume?test=${token}`, ''],
    [`GET /bot${token}/getMe`, ''],
    ['POST /v1/bots', `{"bot_id":"${token}"}`],
    ['POST /v1/bots', `{"${token}`],
    [`POST /v1/bots/${token}/token`, ''],
    [`POST /v1/bots/${id}/token`, `{"overlap":"${token}"}`],
    [`DELETE /v1/bots/${token}`, ''],
    [`POST /v1/bots/${id}/updates`, update],
    [`POST /v1/bots/${id}/updates`, `{"${token}":{}}`],
    [`POST /v1/bots/${id}/updates`, `{"message":"${token}"}`],
    [`POST /v1/bots/${id}/updates`, token],
    [`POST /v1/bots/${id}/updates?ttl=${token}`, update],
    [`POST /v1/bots/${id}/updates?${encodeURIComponent(token)}=1`, update],
    [`POST /v1/bots/${token}/updates`, update],
    ['POST /v1/updates', pair],
    ['POST /v1/updates', `${token}\n${token}\n`],
    ['POST /v1/updates', `{"bot_id":"${token}"}\n{}\n`],
    ['POST /v1/updates', pair.slice(0, -20)],
    ['POST /internal/bot-list', ''],
    ['POST /internal/summary', ''],
  ]
  return lines.flatMap(([line, body]) => [
    http('private', line, { body }, [right]),
    http('private', line, { body }, [`Authorization: Bearer ${wrongKey}`]),
    http('private', line, { body }, [right, `Host: ${server.key}.example`]),
    http('private', line, { body }, [`Authorization: ${server.key}`]),
  ])
}

/** A key, the old secret of another one with its new one, and a revoked key. */
async function keysOf(server: Server): Promise<readonly string[]> {
  const texts: string[] = []
  for (const name of ['used', 'rotated', 'revoked']) {
    const made = await server.admin('POST', '/v1/keys', { name, scopes: ['all'] })
    texts.push(made.body.key)
    const path = `/v1/keys/${made.body.key_id}`
    if (name === 'rotated') {
      texts.push((await server.admin('POST', `${path}/rotate`, { overlap: 60 })).body.key)
    }
    if (name === 'revoked') await server.admin('DELETE', path)
  }
  return texts
}

/** Keys where they belong, where they do not, and broken. */
function keyRequests(key: string): RawRequest[] {
  const right = `Authorization: Bearer ${key}`
  const wrong = `Authorization: Bearer ${key}x`
  const cookie = `Cookie: postbote_session=${key}`
  const lines: [string, string][] = [
    ['GET /v1/keys', ''],
    ['GET /v1/session', ''],
    ['GET /v1/bots', ''],
    ['GET /v1/bots/1', ''],
    ['POST /v1/bots/1/updates', '{}'],
    ['POST /v1/updates', '{"bot_id":1}\n{}\n'],
    [`DELETE /v1/keys/${key}`, ''],
    [`POST /v1/keys/${key}/rotate`, ''],
    ['POST /v1/keys/0123456789abcdef/rotate', `{"overlap":"${key}"}`],
    ['POST /v1/keys', `{"name":"x","scopes":["${key}"]}`],
    ['POST /v1/keys', `{"${key}":1}`],
    ['POST /v1/keys', `{"${key}`],
    ['POST /internal/keys', `{"version":"${key}"}`],
    ['POST /internal/keys-changed', ''],
  ]
  return lines.flatMap(([line, body]) =>
    [right, wrong, cookie].map((header) => http('private', line, { body }, [header])),
  )
}

function http(
  listener: RawRequest['listener'],
  line: string,
  content: { readonly body?: string; readonly type?: string } = {},
  headers: readonly string[] = [],
): RawRequest {
  const { body = '', type = 'application/x-www-form-urlencoded' } = content
  const head = [
    `${line} HTTP/1.1`,
    ...(headers.some((header) => header.startsWith('Host:')) ? [] : ['Host: localhost']),
    // Each request has another address, so that its refusal is not delayed.
    `X-Real-Ip: 10.${[...randomBytes(3)].join('.')}`,
    'Connection: close',
    `Content-Type: ${type}`,
    `Content-Length: ${Buffer.byteLength(body)}`,
    ...headers,
  ]
  return { listener, bytes: `${head.join('\r\n')}\r\n\r\n${body}` }
}

/** A webhook that fails, one that hangs, one that cannot be reached, and one that delivers. */
async function useWebhooks(t: TestContext, server: Server, token: string): Promise<string[]> {
  const botId = Number(token.split(':')[0])
  const failing = await listen(t, (request, response) => {
    response.writeHead(500, {
      'x-echo': String(request.headers['x-telegram-bot-api-secret-token']),
    })
    response.end(JSON.stringify(request.headers))
  })
  const answers: string[] = []
  for (const url of [
    `http://u:${urlPassword}@127.0.0.1:${failing.port}/${urlPath}`,
    'http://127.0.0.1:1/',
    `https://127.0.0.1:${failing.port}/`,
  ]) {
    const parameters = { url, secret_token: webhookSecret, ip_address: '' }
    const answer = await server.call(token, 'setWebhook', parameters)
    answers.push(`HTTP/1.1 ${answer.status} ${answer.text}`)
    if (answer.body.ok === true) {
      await server.push(botId, { message: { text: 'hello' } })
      await failing.asked
      const polled = await server.call(token, 'getUpdates')
      const state = await server.admin('GET', `/v1/bots/${botId}`)
      assert.equal(state.body.webhook_host, `127.0.0.1:${failing.port}`)
      answers.push(polled.text, state.text)
    }
  }
  return answers
}

async function listen(
  t: TestContext,
  listener: RequestListener,
): Promise<{ readonly port: number; readonly asked: Promise<unknown> }> {
  const web = createServer(listener)
  t.after(() => {
    web.close()
    web.closeAllConnections()
  })
  web.listen(0, '127.0.0.1')
  await once(web, 'listening')
  const address = web.address()
  assert(address !== null && typeof address === 'object')
  return { port: address.port, asked: once(web, 'request') }
}

const exchangesAtOnce = 32
const exchangeTimeoutMs = 1_500

async function exchangeAll(server: Server, requests: readonly RawRequest[]): Promise<string[]> {
  const answers: string[] = []
  const waiting = [...requests]
  const work = async (): Promise<void> => {
    for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
      answers.push(await exchange(server, next))
    }
  }
  await Promise.all(Array.from({ length: exchangesAtOnce }, work))
  return answers
}

/** Returns what arrives until the server closes the connection, or until no bytes have arrived for long enough. */
async function exchange(server: Server, { listener, bytes }: RawRequest): Promise<string> {
  const { port } = new URL(listener === 'bot' ? server.botUrl : server.privateUrl)
  const socket = connect(Number(port), '127.0.0.1')
  const chunks: Buffer[] = []
  socket.on('data', (chunk: Buffer) => chunks.push(chunk))
  // A server that refuses a request before its end resets the connection.
  socket.on('error', () => undefined)
  socket.setTimeout(exchangeTimeoutMs, () => socket.destroy())
  socket.write(bytes)
  await once(socket, 'close')
  // getWebhookInfo shows the bot its url, and nothing else does.
  return Buffer.concat(chunks)
    .toString()
    .replace(/"result":{"url":"[^"]*"/, '')
}

function commandLineOf(pid: number): string {
  const files = ['cmdline', 'comm', 'status'].map((name) => `/proc/${pid}/${name}`)
  return files.map((file) => readFileSync(file, 'utf8')).join('\n')
}

/** This does not use assert.doesNotMatch, whose message would be the complete text. */
function assertAbsent(secret: string, text: string, place: string): void {
  const at = text.indexOf(secret)
  assert.equal(at, -1, `${secret} is in ${place}: ${text.slice(Math.max(0, at - 300), at + 60)}`)
}
