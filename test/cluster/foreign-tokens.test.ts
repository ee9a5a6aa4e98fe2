/**
 * Tokens of another server (`--foreign-tokens`), on a server with two workers.
 *
 * `scripts/compare-refusals` runs the last test with 100,000 guesses.
 */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { Agent, get } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text as textOf } from 'node:stream/consumers'
import { test } from 'node:test'
import { setTimeout as sleepMs } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { filesIn } from '../support/kit/files-in.ts'
import { freshBotOf } from '../support/server/bot-of.ts'
import { freshAddress } from '../support/server/fresh-address.ts'
import { type Server, startServer } from '../support/server/server.ts'
import { shared } from '../support/server/shared-server.ts'

const run = promisify(execFile)
const mainFile = fileURLToPath(new URL('../../src/main.js', import.meta.url))
const started = shared((owner) =>
  startServer(owner, { workers: 2, flags: ['--foreign-tokens', '--log-level=trace'] }),
)
const secret = (): string => randomBytes(35).toString('base64url').slice(0, 35)
const foreign = (botId: number): string => `${botId}:${secret()}`
/** The tokens that the server was given. */
const registered: string[] = []

test('a bot with a token of another server polls, by every worker, with its body', async () => {
  const server = await started()
  for (const worker of [0, 1]) {
    const token = foreign(freshBotOf(worker))
    const botId = Number.parseInt(token, 10)
    const registration = { first_name: 'A', username: `bot_${botId}`, token }
    const answer = await server.admin('POST', '/v1/bots', registration)
    assert.deepEqual(answer.body, { bot_id: botId, token })
    registered.push(token)
    await server.push(botId, { message: {} })
    for (let call = 0; call < 4; call++) {
      const { body } = await server.call(token, 'getUpdates', { limit: 1 })
      assert.equal(body.result.length, 1)
    }
    const renewed = await server.admin('POST', `/v1/bots/${botId}/token`, { token: foreign(botId) })
    registered.push(renewed.body.token)
    assert.equal((await server.call(renewed.body.token, 'getMe')).status, 200)
    assert.equal((await server.call(token, 'getMe')).status, 401)
  }
})

test('a session says that the server takes such tokens', async () => {
  const server = await started()
  const { body } = await server.admin('GET', '/v1/session')
  assert.deepEqual(body, {
    key_id: null,
    name: null,
    scopes: ['all'],
    bots: null,
    foreign_tokens: true,
  })
})

test('a token of another bot, and what is no token, is refused without being shown', async () => {
  const server = await started()
  const botId = freshBotOf(0)
  const token = foreign(botId)
  const names = { first_name: 'A', username: 'a_bot' }
  for (const body of [
    { ...names, bot_id: botId + 1, token },
    { ...names, token: `${token}${'x'.repeat(26)}` },
    { ...names, token: { token } },
  ]) {
    const { status, text } = await server.admin('POST', '/v1/bots', body)
    assert.equal(status, 400)
    assert.match(text, /token: expected/)
    assert(!text.includes(token.slice(-20)), text)
  }
})

test('guesses at known and unknown bots take the same slots and get the same texts', async () => {
  const server = await started()
  const [known, unknown] = [freshBotOf(0), freshBotOf(0)]
  await server.register(known)
  const texts = await Promise.all(
    [known, unknown].map(async (botId) => {
      const address = freshAddress()
      const guess = (): Promise<string> => guessed(server, foreign(botId), address)
      const first = await Promise.all(Array.from({ length: 20 }, guess))
      const last = await guess()
      return [...first, last.replace(/after":? ?\d+/g, 'after N').replace(/retry after \d+/, '')]
    }),
  )
  assert.deepEqual(texts[0]?.slice(0, 20), Array(20).fill(texts[0]?.[0]))
  assert.deepEqual(texts[0]?.slice(0, 20), texts[1]?.slice(0, 20))
  for (const each of texts) assert.match(each[20] ?? '', /429/)
})

test('without the option no call has such a field', async (t) => {
  const server = await startServer(t)
  const { botId } = await server.register()
  const names = { first_name: 'A', username: 'a_bot' }
  for (const [path, body, fields] of [
    [
      '/v1/bots',
      { ...names, token: foreign(freshBotOf(0)) },
      'bot_id, first_name, username, polls',
    ],
    [`/v1/bots/${botId}/token`, { token: foreign(botId) }, 'overlap'],
  ] as const) {
    const answer = await server.admin('POST', path, body)
    assert.equal(answer.status, 400)
    assert.match(answer.text, new RegExp(`expected only the fields ${fields}"`))
  }
  assert.equal((await server.admin('POST', `/v1/bots/${botId}/token`, { overlap: 1 })).status, 200)
  assert.equal((await server.admin('POST', `/v1/bots/${botId}/token`)).status, 200)
})

test('the command line takes such a token from a file', async (t) => {
  const server = await started()
  const token = foreign(freshBotOf(0))
  const directory = mkdtempSync(join(tmpdir(), 'postbote-token-'))
  t.after(() => rmSync(directory, { recursive: true }))
  const file = join(directory, 'token')
  writeFileSync(file, `${token}\n`)
  const place = [`--dir=${server.dir}`, `--admin-port=${new URL(server.privateUrl).port}`]
  const args = ['register', '--first-name=A', '--username=a_bot', `--token-file=${file}`, ...place]
  const { stdout } = await run(process.execPath, [mainFile, ...args])
  registered.push(token)
  assert.equal(stdout, `${token}\n`)
  assert.equal((await server.call(token, 'getMe')).status, 200)
})

test('no such token is logged or stored', async () => {
  const server = await started()
  assert(registered.length >= 5)
  const files = filesIn(server.dir).map((path) => readFileSync(path, 'latin1'))
  assert(files.some((content) => content.includes('a_bot')))
  for (const token of registered) {
    const hidden = token.slice(token.indexOf(':') + 1).slice(0, 12)
    for (const content of [server.output(), ...files]) assert(!content.includes(hidden))
  }
})

test('the time of a refusal does not say whether the bot exists', async (t) => {
  const server = await started()
  const known: number[] = []
  for (let nth = 0; nth < 20; nth++) {
    const botId = freshBotOf(0)
    await server.register(botId)
    known.push(botId)
  }
  const unknown = known.map(() => freshBotOf(0))
  const isScript = process.env['GUESSES'] !== undefined
  const count = Number(process.env['GUESSES'] ?? 1_000)
  const connections = isScript ? 100 : 32
  const agent = new Agent({ keepAlive: true, maxSockets: connections })
  t.after(() => agent.destroy())
  const times: [number[], number[]] = [[], []]
  const guessSome = async (share: number): Promise<void> => {
    for (let nth = 0; nth < share; nth++) {
      // Drawn, so that neither kind has a place in the order.
      const kind = Math.random() < 0.5 ? 0 : 1
      const ids = kind === 0 ? known : unknown
      const token = foreign(ids[Math.floor(Math.random() * ids.length)] ?? 0)
      const startMs = performance.now()
      const text = await guessed(server, token, freshAddress(), agent)
      times[kind].push(performance.now() - startMs)
      assert.match(text, /^401/)
    }
  }
  const { token } = await server.register(freshBotOf(0))
  const quiet = await callsUntil(server, token, sleepMs(isScript ? 3_000 : 100))
  const guesses = Array.from({ length: connections }, () =>
    guessSome(Math.ceil(count / connections)),
  )
  const busy = await callsUntil(server, token, Promise.all(guesses))
  t.diagnostic(`getMe of another bot: p99 ${quiet} ms without guesses, ${busy} ms with them`)
  const z = rankDifference(...times)
  const medians = times.map((each) => each.toSorted((a, b) => a - b)[each.length >> 1]?.toFixed(3))
  t.diagnostic(`${count} guesses: medians ${medians.join(' and ')} ms, z = ${z.toFixed(2)}`)
  // By chance, one run in 16,000 is beyond this.
  assert(Math.abs(z) < 4, `z = ${z}`)
})

/** Calls getMe every 5 ms until the work has ended, and returns the 99th percentile of its time in ms. */
async function callsUntil(server: Server, token: string, work: Promise<unknown>): Promise<string> {
  const call = { isOver: false }
  const end = work.finally(() => (call.isOver = true))
  const times: number[] = []
  while (!call.isOver) {
    const startMs = performance.now()
    assert.equal((await server.call(token, 'getMe')).status, 200)
    times.push(performance.now() - startMs)
    await sleepMs(5)
  }
  await end
  return times.toSorted((a, b) => a - b)[Math.floor(times.length * 0.99)]?.toFixed(1) ?? 'none'
}

/** Returns the status and the text of the refusal of a token. */
function guessed(server: Server, token: string, address: string, agent?: Agent): Promise<string> {
  return new Promise((resolve, reject) => {
    const headers = { 'x-real-ip': address }
    const options = { headers, ...(agent === undefined ? { agent: false } : { agent }) }
    get(`${server.botUrl}/bot${token}/getMe`, options, (response) => {
      textOf(response).then((body) => resolve(`${response.statusCode} ${body}`), reject)
    }).on('error', reject)
  })
}

/** The test of Mann and Whitney: how many standard deviations the ranks of the two lie apart. */
function rankDifference(first: readonly number[], second: readonly number[]): number {
  const all = [...first.map((ms) => [ms, 1] as const), ...second.map((ms) => [ms, 0] as const)]
  const ranked = all.toSorted(([a], [b]) => a - b)
  let sum = 0
  for (const [rank, [, isFirst]] of ranked.entries()) sum += isFirst * (rank + 1)
  const [n, m] = [first.length, second.length]
  const mean = (n * (n + m + 1)) / 2
  return (sum - mean) / Math.sqrt((n * m * (n + m + 1)) / 12)
}
