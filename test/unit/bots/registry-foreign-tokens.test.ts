/** Tokens that another server has made (`--foreign-tokens`). */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { makeToken, parseToken } from '../../../src/api/token.ts'
import type { PostboteError } from '../../../src/kit/errors.ts'
import { settle } from '../../support/kit/fake-clock.ts'
import { BotsLife } from '../../support/queue/bots-life.ts'
import { MemoryStore } from '../../support/store/memory-store.ts'

const names = { firstName: 'A', username: 'a_bot' }
const unknownToken = { code: 'UNKNOWN_TOKEN' }
const secretOf = (length: number): string =>
  randomBytes(length).toString('base64url').slice(0, length)

/** Counts what is read, by its keys without the digits of bots. */
class CountingStore extends MemoryStore {
  reads: string[] = []

  override getMany(keys: readonly Buffer[]): Promise<readonly (Buffer | undefined)[]> {
    this.reads.push(keys.map((key) => `${key.toString('latin1').charAt(0)}${key.length}`).join(' '))
    return super.getMany(keys)
  }
}

/** Registers a bot with a foreign token, and returns the token. */
async function registerForeign(bots: BotsLife, token: string): Promise<string> {
  const { registry } = bots
  const given = registry.foreignToken(token)
  const issued = await registry.register({ botId: given.botId, ...names }, given)
  return issued.token
}

test('a token of another server opens its bot, with a secret of 35 to 60 characters', async () => {
  const bots = await BotsLife.open({ takesForeignTokens: true })
  for (const [index, length] of [35, 36, 46, 60].entries()) {
    const token = `${100 + index}:${secretOf(length)}`
    assert.equal(await registerForeign(bots, token), token)
    // Once by its hash, and once by its bytes.
    for (let call = 0; call < 2; call++) assert.equal((await bots.queueOf(token)).id, 100 + index)
  }
  await bots.queueOf(await bots.register(200))
})

test('only the hash of such a token is stored', async () => {
  const store = new CountingStore()
  const bots = await BotsLife.open({ takesForeignTokens: true, store: () => store })
  const secret = secretOf(46)
  await registerForeign(bots, `100:${secret}`)
  const record = bots.registry.bots.loaded(100)?.record
  assert.doesNotMatch(JSON.stringify(record), new RegExp(secret))
  assert.equal(record?.secrets[0]?.isForeign, true)
})

test('what is no such token, or that of another bot, is refused without showing it', async () => {
  const bots = await BotsLife.open({ takesForeignTokens: true })
  const { registry } = bots
  const secret = secretOf(35)
  for (const text of [
    secret,
    `99:${secret}`,
    `0100:${secret}`,
    `100:${secretOf(34)}`,
    `100:${secretOf(61)}`,
    `100:${secret.slice(1)}.`,
    `${2 ** 52}:${secret}`,
  ]) {
    assert.throws(
      () => registry.foreignToken(text),
      ({ code, message }: PostboteError) =>
        code === 'BAD_REQUEST' && !message.includes(secret.slice(1, 10)),
      text,
    )
  }
  assert.throws(() => registry.foreignToken(`100:${secret}`, 101), { code: 'BAD_REQUEST' })
})

test('without the option such a token is not accepted', async () => {
  const store = new MemoryStore()
  const token = `100:${secretOf(46)}`
  const own = makeToken(101, randomBytes)
  const before = await BotsLife.open({ takesForeignTokens: true, store: () => store })
  await registerForeign(before, token)
  await registerForeign(before, own)
  await before.close()

  const bots = await BotsLife.open({ store: () => store })
  await assert.rejects(bots.queueOf(token), { code: 'INVALID_TOKEN' })
  await bots.push(bots.request(100))
  await assert.rejects(bots.queueOf(token), { code: 'INVALID_TOKEN' })
  // That of another such server has its checksum.
  await bots.queueOf(own)
})

test('without the option the log says how many bots have such a token, and with it nothing', async () => {
  const store = new MemoryStore()
  const before = await BotsLife.open({ takesForeignTokens: true, store: () => store })
  for (const botId of [100, 101]) await registerForeign(before, `${botId}:${secretOf(46)}`)
  await before.register(102)
  await before.close()

  for (const takesForeignTokens of [false, true]) {
    const warned: unknown[] = []
    const warn = (fields: object, text: string): void => void warned.push([fields, text])
    const log = { debug: warn, error: warn, warn }
    const bots = await BotsLife.open({ takesForeignTokens, store: () => store, log })
    bots.startFleet()
    assert.equal((await bots.fleet.summary()).length, 1)
    const text =
      'bots with tokens that another server has made get 401, because --foreign-tokens is not set'
    const expected = [[{ shard: 0, bots: 2, first: 'bot100' }, text]]
    assert.deepEqual(warned, takesForeignTokens ? [] : expected)
    await bots.close()
  }
})

test('a renewal takes a token of another server or makes one, and the old one ends', async () => {
  const bots = await BotsLife.open({ takesForeignTokens: true })
  const { registry } = bots
  const [first, second] = [`100:${secretOf(35)}`, `100:${secretOf(35)}`]
  await registerForeign(bots, first)
  const issued = await registry.renewToken(100, 60, registry.foreignToken(second, 100))
  assert.equal(issued.token, second)
  const stored = registry.bots.loaded(100)?.record.secrets ?? []
  assert.deepEqual(
    stored.map(({ isForeign }) => isForeign),
    [true, true],
  )
  await bots.queueOf(first)
  await bots.queueOf(second)
  await bots.clock.advance(60_000)
  await assertRefused(bots, first, unknownToken)
  const own = (await registry.renewToken(100, 0)).token
  await assertRefused(bots, second, unknownToken)
  await bots.queueOf(own)
  assert.deepEqual(parseToken(own).botId, 100)
})

test('a renewal that is repeated with its token leaves the token before its overlap', async () => {
  const bots = await BotsLife.open({ takesForeignTokens: true })
  const { registry } = bots
  const [first, second] = [`100:${secretOf(35)}`, `100:${secretOf(35)}`]
  await registerForeign(bots, first)
  const renew = () => registry.renewToken(100, 60, registry.foreignToken(second, 100))
  await renew()
  await bots.clock.advance(30_000)
  assert.equal((await renew()).token, second)
  await bots.queueOf(first)
  await bots.clock.advance(30_000)
  await assertRefused(bots, first, unknownToken)
  await bots.queueOf(second)
})

test('a wrong token reads the same and is refused after the same time, whether its bot is known or not', async () => {
  const store = new CountingStore()
  const bots = await BotsLife.open({ takesForeignTokens: true, store: () => store })
  await bots.register(100)
  await bots.register(101)
  const { registry } = bots
  const idle = registry.bots.loaded(101)
  assert(idle !== undefined)
  await bots.clock.advance(1_000)
  registry.bots.forget(idle)
  idle.main.shard.forget(101)
  const used = registry.bots.loaded(100)?.lastUsedMs

  const seen: (readonly [readonly string[], number | undefined])[] = []
  for (const botId of [100, 101, 102, 103]) {
    for (const token of [makeToken(botId, randomBytes), `${botId}:${secretOf(46)}`]) {
      store.reads = []
      const startMs = bots.clock.nowMs()
      let tookMs: number | undefined
      const refused = assert.rejects(bots.queueOf(token), unknownToken).finally(() => {
        tookMs = bots.clock.nowMs() - startMs
      })
      for (let ms = 0; ms < 40; ms++) await bots.clock.advance(1)
      await refused
      seen.push([store.reads, tookMs])
      assert.equal(registry.bots.loaded(101), undefined)
    }
  }
  assert.equal(seen.length, 8)
  for (const each of seen) assert.deepEqual(each, seen[0])
  // Not what is stored of its queues, which a known bot has, and which may be in memory.
  assert.match(seen[0]?.[0].join() ?? '', /^b\d+$/)
  assert.equal(seen[0]?.[1], 20)
  // Guesses do not keep a bot in memory either.
  assert.equal(registry.bots.loaded(100)?.lastUsedMs, used)
})

test('where records may be missing, a wrong token is refused alike for known and unknown bots', async () => {
  const bots = await BotsLife.open({ takesForeignTokens: true })
  await bots.register(100)
  bots.registry.bots.doubt(0)
  for (const botId of [100, 101]) {
    await assertRefused(bots, makeToken(botId, randomBytes), { code: 'SHARD_BROKEN' })
  }
})

async function assertRefused(bots: BotsLife, token: string, error: object): Promise<void> {
  const refused = assert.rejects(bots.queueOf(token), error)
  await settle()
  await bots.clock.advance(20)
  await refused
}
