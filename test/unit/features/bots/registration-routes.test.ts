/** The route of registrations without a server: this worker has some of the bots, and another one answers as the test writes. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import Fastify from 'fastify'
import { derivedBotId } from '../../../../src/bots/derived-bot-id.ts'
import { BodyBudget } from '../../../../src/admission/budgets/body-budget.ts'
import { kib, mib } from '../../../../src/kit/limits.ts'
import { chargeCalls } from '../../../../src/admission/budgets/charge-calls.ts'
import { addRequestAccess } from '../../../../src/access/request-access.ts'
import {
  addRegistrationRoutes,
  type RegistrationRoutesOptions,
} from '../../../../src/features/bots/registration-routes.ts'
import { recordCalls } from '../../../../src/private-api/record-calls.ts'
import type { RecordedCall } from '../../../../src/shard/records/audit-record.ts'
import { TestPayer } from '../../../support/http/test-payer.ts'
import { settle } from '../../../support/kit/fake-clock.ts'
import { FakeOwnerStream } from '../../../support/network/fake-owner-stream.ts'
import { BotsLife } from '../../../support/queue/bots-life.ts'
import { TestCounters } from '../../../support/store/shard-life.ts'

const names = { first_name: 'A', username: 'a' }

async function setUp({
  isOwn = (_botId: number): boolean => true,
  bodiesBytesMax = 1 * mib,
  readMs = 0,
} = {}) {
  const bots = await BotsLife.open({ shards: 2 })
  const asked: FakeOwnerStream[] = []
  const bodies = new BodyBudget({
    bytesMax: bodiesBytesMax,
    counters: new TestCounters(),
    senderOf: () => ({ address: 'a', shareBytesMax: bodiesBytesMax }),
  })
  const key = { isCurrent: true }
  const payer = new TestPayer()
  const turns = { count: 0, ms: 0 }
  const audit = { isHeld: false, calls: [] as RecordedCall[], held: [] as (() => void)[] }
  const worker = { hasLeft: false }
  const app = Fastify()
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', (_request, _payload, done) => done(null))
  addRequestAccess(app)
  chargeCalls(app)
  app.addHook('onRequest', async (request) => {
    request.access = 'root'
    request.payer = payer
  })
  const own = {
    bots: bots.registry,
    bodies,
    isFromWorker: () => false,
    clock: {
      after: (delayMs: number, fire: () => void) => bots.clock.after(delayMs, fire),
      monotonicMs: () => bots.clock.monotonicMs() + (turns.ms += readMs),
      soon(fire: () => void) {
        turns.count += 1
        bots.clock.soon(fire)
      },
    },
    keys: {
      ring: { isCurrent: () => key.isCurrent },
      registry: { clock: bots.clock },
      audit: {
        writer: {
          record(call: RecordedCall) {
            audit.calls.push(call)
            if (!audit.isHeld) return Promise.resolve()
            return new Promise<void>((resolve) => audit.held.push(resolve))
          },
        },
      },
    },
    webhookConnectionsMax: 100,
    ownersOf: () => ({
      self: 0,
      others: [1],
      isOtherNode: () => false,
      ownerOf: (botId: number) => (isOwn(botId) ? 0 : 1),
      isOwn: (owner: number) => owner === 0 && !worker.hasLeft,
      hasLeft: worker.hasLeft,
      hangs: () => 0,
      openStream: () => {
        const stream = new FakeOwnerStream()
        asked.push(stream)
        return stream
      },
    }),
  }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the route uses no more
  const options = own as unknown as RegistrationRoutesOptions & Parameters<typeof recordCalls>[1]
  recordCalls(app, options)
  addRegistrationRoutes(app, options)
  await app.ready()
  const sendText = async (payload: string | Buffer): Promise<Record<string, unknown>[]> => {
    const { body } = await app.inject({
      method: 'POST',
      url: '/v1/registrations',
      headers: { 'content-type': 'application/x-ndjson' },
      payload,
    })
    return body
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line))
  }
  const send = (lines: readonly object[]): Promise<Record<string, unknown>[]> =>
    sendText(lines.map((line) => JSON.stringify(line)).join('\n'))
  return { app, audit, bots, asked, bodies, key, payer, turns, worker, send, sendText }
}

test('thousands of bots with webhooks that are sent twice are registered once, in the order of their lines', async () => {
  const { bots, send } = await setUp()
  const lines = Array.from({ length: 1_000 }, (_, nth) => ({
    ...names,
    idempotency_key: `k${nth}`,
    webhook: { url: `https://bot.example/${nth}` },
  }))
  const first = await send(lines)
  assert.deepEqual(
    first.map(({ bot_id: botId }) => botId),
    lines.map(({ idempotency_key: key }) => derivedBotId(key)),
  )
  assert.ok(first.every(({ token }) => typeof token === 'string'))
  assert.deepEqual(
    await send(lines),
    first.map(({ bot_id: botId }) => ({ bot_id: botId, duplicate: true })),
  )
  assert.equal(bots.webhooks.verified.length, 1_000)
  const registered = bots.lives.flatMap(({ committed }) => committed)
  assert.equal(registered.filter(({ kind }) => kind === 'bot').length, 1_000)
})

test('the audit names the bots of a batch before the first result of the batch goes out, also when the client is gone', async () => {
  const { app, audit } = await setUp()
  const lines = Array.from({ length: 40 }, (_, nth) => ({ ...names, idempotency_key: `k${nth}` }))
  audit.isHeld = true
  const response = app.inject({
    method: 'POST',
    url: '/v1/registrations',
    headers: { 'content-type': 'application/x-ndjson' },
    payload: lines.map((line) => JSON.stringify(line)).join('\n'),
    payloadAsStream: true,
  })
  while (audit.held.length === 0) await settle()
  assert.deepEqual(audit.calls[0]?.record.botIds, undefined)
  audit.held.shift()?.()
  let isAnswered = false
  void response.then(() => (isAnswered = true))
  while (audit.held.length < 2) await settle()
  for (let turns = 0; turns < 20; turns++) await settle()
  assert.equal(isAnswered, false)
  const named = audit.calls.slice(1).flatMap(({ record }) => record.botIds ?? [])
  assert.deepEqual(
    named,
    lines.slice(0, 32).map(({ idempotency_key: key }) => derivedBotId(key)),
  )
  for (const goOn of audit.held.splice(0)) goOn()
  const stream = (await response).stream()
  stream.on('error', () => undefined).destroy()
  for (const goOn of audit.held) goOn()
  for (let turns = 0; turns < 20; turns++) await settle()
  const bots = audit.calls.flatMap(({ record }) => record.botIds ?? [])
  assert.equal(new Set(bots).size, bots.length)
})

test('some webhooks are verified at once, and not all', async () => {
  const { bots, send } = await setUp()
  bots.webhooks.isHolding = true
  const lines = Array.from({ length: 100 }, (_, nth) => ({
    ...names,
    idempotency_key: `k${nth}`,
    webhook: { url: 'https://bot.example/' },
  }))
  const sent = send(lines)
  for (let turns = 0; turns < 20; turns++) await settle()
  assert.equal(bots.webhooks.held.length, 32)
  bots.webhooks.isHolding = false
  for (const each of bots.webhooks.held) each.succeed()
  assert.equal((await sent).length, 100)
})

test('a body counts as one that is held until its last line has its result, so that slow webhooks fill no memory', async () => {
  const { bodies, bots, send } = await setUp({ bodiesBytesMax: 24 * kib })
  bots.webhooks.isHolding = true
  const lines = Array.from({ length: 150 }, (_, nth) => ({
    ...names,
    idempotency_key: `k${nth}`,
    webhook: { url: 'https://bot.example/' },
  }))
  const sent = send(lines)
  for (let turns = 0; turns < 20; turns++) await settle()
  assert.equal(bodies.held, lines.map((line) => JSON.stringify(line)).join('\n').length)
  const [refused] = await send(lines)
  assert.equal(refused?.['code'], 'TOO_MANY_BODIES')
  bots.webhooks.isHolding = false
  for (const each of bots.webhooks.held) each.succeed()
  assert.equal((await sent).length, 150)
  await settle()
  assert.equal(bodies.held, 0)
})

test('a line goes to the owner of its bot with the id that follows from its key, and its answer is passed on', async () => {
  const otherId = derivedBotId('other')
  const { asked, send } = await setUp({ isOwn: (botId) => botId !== otherId })
  const line = { ...names, idempotency_key: 'other', webhook: { url: 'https://bot.example/' } }
  const sent = send([line, { ...names, idempotency_key: 'own' }, line])
  for (let turns = 0; turns < 20; turns++) await settle()
  const [first] = asked
  assert.deepEqual(JSON.parse(first?.written ?? ''), { ...line, bot_id: otherId })
  assert.equal(asked.length, 1, 'a line waits for earlier ones of its bot')
  first?.answer().end(`{"bot_id":${otherId},"token":"t"}\n`)
  for (let turns = 0; turns < 20; turns++) await settle()
  asked[1]?.answer().end('{"error":{"code":"STORE_UNAVAILABLE","message":"m"}}')
  const [one, own, two] = await sent
  assert.deepEqual(one, { bot_id: otherId, token: 't' })
  assert.equal(own?.['bot_id'], derivedBotId('own'))
  assert.deepEqual(two, { error: { code: 'STORE_UNAVAILABLE', message: 'm' } })
})

test('a line waits for an earlier one of its bot, also for one that fails, and is refused if the key of the call ends meanwhile', async () => {
  const { asked, key, send } = await setUp({ isOwn: () => false })
  const botId = 4_711
  const lines = ['a', 'b', 'c'].map((name) => ({ ...names, idempotency_key: name, bot_id: botId }))
  const sent = send(lines)
  for (let turns = 0; turns < 20; turns++) await settle()
  assert.equal(asked.length, 1)
  asked[0]?.refuse('OUTCOME_UNKNOWN')
  for (let turns = 0; turns < 20; turns++) await settle()
  assert.deepEqual(JSON.parse(asked[1]?.written ?? ''), lines[1])
  key.isCurrent = false
  asked[1]?.answer().end(`{"bot_id":${botId},"token":"t"}`)
  const codes = (await sent).map(({ token, error }) => token ?? Object(error).code)
  assert.deepEqual(codes, ['OUTCOME_UNKNOWN', 't', 'UNAUTHORIZED'])
})

test('lines go on at the successor of a worker that is replaced meanwhile, also one whose webhook was just verified', async () => {
  const { asked, bots, send, worker } = await setUp()
  bots.webhooks.isHolding = true
  const line = { ...names, webhook: { url: 'https://bot.example/' } }
  const lines = Array.from({ length: 40 }, (_, nth) => ({ ...line, idempotency_key: `k${nth}` }))
  const sent = send(lines)
  for (let turns = 0; turns < 20; turns++) await settle()
  worker.hasLeft = true
  for (const index of [0, 1]) await bots.dropShard(index)
  for (const each of bots.webhooks.held) each.succeed()
  for (let answered = 0; answered < lines.length; await settle()) {
    for (const stream of asked.slice(answered)) {
      const { bot_id: botId } = JSON.parse(stream.written)
      stream.answer().end(JSON.stringify({ bot_id: botId, token: 't' }))
      answered += 1
    }
  }
  assert.deepEqual(
    await sent,
    lines.map(({ idempotency_key: key }) => ({ bot_id: derivedBotId(key), token: 't' })),
  )
})

test('when the key of the call has ended, the lines that are left are refused', async () => {
  const { bots, key, send } = await setUp()
  key.isCurrent = false
  const [refused] = await send([{ ...names, idempotency_key: 'a' }])
  assert.deepEqual(Object(refused?.['error']).code, 'UNAUTHORIZED')
  assert.deepEqual((await bots.fleet.page({ after: 0, limit: 9 })).bots, [])
})

test('other work gets its turns while thousands of lines are refused, and while blank ones are skipped', async () => {
  // Each look at the clock takes 1 ms.
  const { sendText, turns } = await setUp({ readMs: 1 })
  assert.equal((await sendText('5\n'.repeat(1_000))).length, 1_000)
  assert.ok(turns.count >= 50, `${turns.count} turns`)
  turns.count = 0
  assert.equal((await sendText('\n'.repeat(1_000))).length, 0)
  assert.ok(turns.count >= 50, `${turns.count} turns`)
})

test('a body of too many lines is refused as a whole', async () => {
  const { bots, sendText } = await setUp()
  const line = JSON.stringify({ ...names, idempotency_key: 'a' })
  const [refused] = await sendText(`${line}\n${'\n'.repeat(100_000)}`)
  assert.equal(refused?.['code'], 'REQUEST_TOO_LARGE')
  assert.deepEqual((await bots.fleet.page({ after: 0, limit: 9 })).bots, [])
  assert.equal((await sendText(`${line}\n${'\n'.repeat(99_999)}`)).length, 1)
})

function tooLargeText(bytes: number): string {
  return `Request Entity Too Large: expected at most 65536 bytes of parameters, got ${bytes}`
}

test('a line that is longer than a body may be, or is no UTF-8, fails alone', async () => {
  const { sendText } = await setUp()
  const results = await sendText(
    Buffer.concat([
      lineOf('a', 'x'.repeat(64 * kib)),
      Buffer.from(`${' '.repeat(64 * kib + 1)}\n`),
      lineOf('b', Buffer.from([0xff])),
      lineOf('c', 'A'),
    ]),
  )
  const errors = results.map(({ error }) => [Object(error).code, Object(error).message])
  assert.deepEqual(errors, [
    ['REQUEST_TOO_LARGE', tooLargeText(lineOf('a', 'x'.repeat(64 * kib)).length - 1)],
    ['REQUEST_TOO_LARGE', tooLargeText(64 * kib + 1)],
    ['BAD_REQUEST', 'Bad Request: line: expected valid UTF-8'],
    [undefined, undefined],
  ])
})

function lineOf(key: string, name: string | Buffer): Buffer {
  return Buffer.concat([
    Buffer.from(`{"idempotency_key":"${key}","username":"a","first_name":"`),
    Buffer.from(name),
    Buffer.from('"}\n'),
  ])
}

test('each batch of lines waits for its payer, and one that may not begin registers nothing and has an error for each line', async () => {
  const { audit, bots, payer, send } = await setUp()
  const lines = Array.from({ length: 40 }, (_, nth) => ({ ...names, idempotency_key: `k${nth}` }))
  payer.isOver = 'refused'
  const refused = await send(lines)
  const codes = refused.map((line) => Object(line['error']).code)
  assert.deepEqual(codes, Array(40).fill('TOO_MANY_REQUESTS'))
  assert.deepEqual(
    bots.lives.flatMap(({ committed }) => committed),
    [],
  )
  assert.deepEqual(
    audit.calls.flatMap(({ record }) => record.botIds ?? []),
    [],
  )
  payer.isOver = false
  assert.ok((await send(lines)).every(({ token }) => typeof token === 'string'))
  assert.equal(payer.charges.length, 3)
})
