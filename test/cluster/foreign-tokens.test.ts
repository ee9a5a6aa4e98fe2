/**
 * Tokens of another server (`--foreign-tokens`), on a server with two workers.
 *
 * `scripts/compare-refusals` runs the last test with 100,000 guesses.
 */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { readFilesIn } from '../support/kit/files-in.ts'
import { freshBotOf } from '../support/server/bot-of.ts'
import { compareRefusals, guessed } from '../support/server/compare-refusals.ts'
import { freshAddress } from '../support/server/fresh-address.ts'
import { startServer } from '../support/server/server.ts'
import { shared } from '../support/server/shared-server.ts'
import { outputOf } from '../support/programs/postbote.ts'

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
      const guess = (): Promise<string> =>
        guessed(server, { path: `/bot${foreign(botId)}/getMe` }, { address })
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
  const names = ['--first-name=A', '--username=a_bot']
  const out = await outputOf(['bots', 'register', ...names, `--token-file=${file}`, ...place])
  registered.push(token)
  assert.equal(out, `${token}\n`)
  assert.equal((await server.call(token, 'getMe')).status, 200)
})

test('no such token is logged or stored', async () => {
  const server = await started()
  assert(registered.length >= 5)
  const files = Array.from(readFilesIn(server.dir).values(), (bytes) => bytes.toString('latin1'))
  assert(files.some((content) => content.includes('a_bot')))
  for (const token of registered) {
    const hidden = token.slice(token.indexOf(':') + 1).slice(0, 12)
    for (const content of [server.output(), ...files]) assert(!content.includes(hidden))
  }
})

test('the time of a refusal does not say whether the bot exists', async (t) => {
  const server = await started()
  await compareRefusals(t, {
    server,
    register: (botId) => server.register(botId),
    guess: (botId) => ({ path: `/bot${foreign(botId)}/getMe` }),
  })
})
