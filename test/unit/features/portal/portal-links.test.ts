import assert from 'node:assert/strict'
import { test } from 'node:test'
import { PortalLinks, portalLinksMax } from '../../../../src/features/portal/portal-links.ts'
import { portalSecretIn } from '../../../../src/api/portal-secret.ts'
import { foreignRefusalMs } from '../../../../src/api/token.ts'
import type { PostboteError } from '../../../../src/kit/errors.ts'
import type { BotRecord } from '../../../../src/shard/records/bot-record.ts'
import { FakeClock } from '../../../support/kit/fake-clock.ts'
import { BotsLife } from '../../../support/queue/bots-life.ts'

const record: BotRecord = { firstName: 'A', username: 'a', secrets: [], createdAtMs: 0 }
const all = { can: ['look'], ttlS: 60 } as const
const day = 86_400_000

/** The links of bot 100, and of no other one. Its record is on disk; whether the bot is in memory can be changed. */
function setUp() {
  const clock = new FakeClock()
  const disk = new Map([[100, record]])
  const bot = { record, isRemoved: false, lastUsedMs: 0 }
  const memory = new Map([[100, bot]])
  const reads: number[] = []
  const links = new PortalLinks(
    clock,
    {
      loaded: (botId) => memory.get(botId),
      find: (botId) => memory.get(botId),
      load: async ([botId = 0]) => {
        const stored = disk.get(botId)
        if (stored !== undefined) memory.set(botId, Object.assign(bot, { record: stored }))
      },
      shardOf: () => ({
        clock,
        readBot: async (botId) => {
          reads.push(botId)
          return { bot: disk.get(botId) }
        },
      }),
      assertAbsent: () => undefined,
    },
    async (botId, change) => {
      const changed = change(disk.get(botId) ?? record)
      disk.set(botId, changed.record)
      bot.record = changed.record
      return changed
    },
  )
  const secretOf = async (ttlS = 60) => {
    const { link, secretText } = await links.make(100, { ...all, ttlS })
    const secret = portalSecretIn(`Bearer ${secretText}`)
    assert(secret !== undefined)
    return { ...secret, link, secretText }
  }
  /** Moves the clock until a promise settles, and returns its error code and how long it took. */
  const refusalOf = async (promise: Promise<unknown>) => {
    const beganMs = clock.monotonicMs()
    const ended: { code?: string; tookMs?: number } = {}
    promise.catch((error: PostboteError) => {
      Object.assign(ended, { code: error.code, tookMs: clock.monotonicMs() - beganMs })
    })
    for (let ms = 0; ms < 100; ms++) await clock.advance(1)
    return ended
  }
  return { clock, disk, bot, memory, reads, links, secretOf, refusalOf }
}

test('a link is accepted until its end, by a bot in memory and one on disk', async () => {
  const { clock, links, memory, secretOf, refusalOf } = setUp()
  const { botId, secret, link } = await secretOf()
  assert.equal((await links.authorize({ botId, secret })).id, link.id)
  memory.clear()
  assert.equal((await links.authorize({ botId, secret })).id, link.id)
  await clock.advance(59_999)
  assert.equal((await links.authorize({ botId, secret })).id, link.id)
  await clock.advance(1)
  assert.equal((await refusalOf(links.authorize({ botId, secret }))).code, 'BAD_LINK')
})

test('a wrong secret is refused after the same read and the same time, whether the bot is there or not', async () => {
  const { links, memory, reads, secretOf, refusalOf } = setUp()
  const { secret } = await secretOf()
  const wrong = secret.replace(/^./, (first) => (first === 'A' ? 'B' : 'A'))
  const refusal = { code: 'BAD_LINK', tookMs: foreignRefusalMs }
  assert.deepEqual(await refusalOf(links.authorize({ botId: 100, secret: wrong })), refusal)
  memory.clear()
  assert.deepEqual(await refusalOf(links.authorize({ botId: 100, secret: wrong })), refusal)
  assert.equal(memory.size, 0)
  assert.deepEqual(await refusalOf(links.authorize({ botId: 101, secret })), refusal)
  assert.deepEqual(reads, [100, 100, 101])
})

test('what is open ends with its link, by its time, however long that is, by a wall clock that was set, and by a removal', async () => {
  const { bot, clock, links, secretOf } = setUp()
  const ended: string[] = []
  const watch = async (name: string, ttlS: number) => {
    const { link } = await secretOf(ttlS)
    return { link, unwatch: links.watch(100, link.id, () => void ended.push(name)) }
  }
  await watch('a minute', 60)
  const { unwatch } = await watch('not watched', 60)
  await watch('a month', 30 * 86_400)
  const revoked = await watch('revoked', 120)
  await watch('nearly a month', 30 * 86_400 - 1)
  unwatch()
  await clock.advance(59_000)
  assert.equal(ended.length, 0)
  await clock.advance(1_000)
  assert.deepEqual(ended, ['a minute'])
  await links.revoke(100, revoked.link.id)
  assert.deepEqual(ended, ['a minute', 'revoked'])
  clock.jump(30 * day - 60_500)
  await clock.advance(5_000)
  assert.deepEqual(new Set(ended), new Set(['a minute', 'revoked', 'a month', 'nearly a month']))
  const late = await watch('late', 60)
  bot.isRemoved = true
  links.endOver(100)
  assert(ended.includes('late'))
  let isEnded = false
  links.watch(100, late.link.id, () => (isEnded = true))
  assert.equal(isEnded, true)
  assert.equal(clock.timers, 0)
})

test('what is open ends when the bot is removed', async () => {
  const bots = await BotsLife.open()
  await bots.register(100)
  const { portalLinks } = bots
  const { link } = await portalLinks.make(100, all)
  let isEnded = false
  portalLinks.watch(100, link.id, () => (isEnded = true))
  await bots.wait(bots.registry.remove(100))
  assert.equal(isEnded, true)
})

test('a bot has a bounded number of links, ended ones make room, and without any its record is as before', async () => {
  const { clock, disk, links, secretOf } = setUp()
  for (let nth = 0; nth < portalLinksMax; nth++) await secretOf(nth === 0 ? 1 : 60)
  await assert.rejects(secretOf(), { code: 'TOO_MANY_LINKS' })
  await clock.advance(1_000)
  await secretOf()
  await assert.rejects(links.revoke(100, 'ffffffffffffffff'), { code: 'UNKNOWN_LINK' })
  assert.equal((await links.list(100)).length, portalLinksMax)
  await assert.rejects(links.list(101), { code: 'UNKNOWN_BOT' })
  assert.equal(await links.revoke(100), portalLinksMax)
  assert.deepEqual(disk.get(100), record)
})

test('the secret of a link has one spelling, and only its hash is stored', async () => {
  const { disk, secretOf } = setUp()
  const { secret, secretText } = await secretOf()
  assert(!JSON.stringify([...disk]).includes(secret))
  for (const wrong of [
    undefined,
    secretText,
    `Basic ${secretText}`,
    `Bearer ${secretText}x`,
    `Bearer ${secretText.slice(0, -1)}`,
    `Bearer ${secretText} `,
    `Bearer ${secretText.replace('pbo', 'pbk')}`,
    `Bearer ${secretText.replace('_100_', '_0100_')}`,
    `Bearer ${secretText.replace('_100_', '_99_')}`,
    `Bearer ${secretText}, Bearer ${secretText}`,
  ]) {
    assert.equal(portalSecretIn(wrong), undefined, wrong)
  }
})
