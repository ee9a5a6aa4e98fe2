import assert from 'node:assert/strict'
import { test } from 'node:test'
import { storeRelayed } from '../../../../src/features/relay/relay-batch.ts'
import type { Token } from '../../../../src/api/token.ts'
import { kib } from '../../../../src/kit/limits.ts'
import { readOriginAnswer } from '../../../../src/features/relay/read-origin-answer.ts'
import type { StoredRelay } from '../../../../src/shard/records/bot-record.ts'
import { until } from '../../../support/kit/until.ts'
import { BotsLife } from '../../../support/queue/bots-life.ts'
import { FakeRelays, fakeFrom, otherFrom } from '../../../support/queue/fake-relays.ts'
import { MemoryStore } from '../../../support/store/memory-store.ts'

const botId = 100
const token: Token = { botId: 123_456, secret: 'AAF-abcdefghijklmnopqrstuvwxyz_0123' }
const dayMs = 86_400_000

/** A bot with a relay whose origin the test answers for. */
async function open(store = new MemoryStore()) {
  const relays = new FakeRelays()
  const bots = await BotsLife.open({ store: () => store, relays })
  await bots.register(botId)
  await bots.relays.set(botId, { from: fakeFrom, token })
  const queue = await bots.registry.queueOf(botId, false)
  const { origin } = relays
  return { bots, relays, origin, store, queue }
}

type Opened = Awaited<ReturnType<typeof open>>

function update(id: number, more: object = {}): object {
  return { update_id: id, message: { n: id }, ...more }
}

/** The numbers of the pending updates in their order. */
async function pending({ queue }: Pick<Opened, 'queue'>): Promise<number[]> {
  const found = await queue.updates.pendingAfter(0, 1_000)
  return found.map((each) => Number(/"n":(\d+)/.exec(each.body().toString())?.[1]))
}

function recordOf({ bots }: Pick<Opened, 'bots'>): StoredRelay | undefined {
  return bots.registry.bots.loaded(botId)?.record.relay
}

/** Lets the clock run until the next poll, and returns how long that takes. */
async function untilPolled({ bots, origin }: Opened): Promise<number> {
  const startMs = bots.clock.nowMs()
  for (let round = 0; round < 10_000 && !origin.isPolled; round++) await bots.clock.advance(50)
  assert(origin.isPolled)
  return bots.clock.nowMs() - startMs
}

const typesOf = ({ bots }: Opened): string[] => bots.events.map(({ type }) => type)

test('updates are stored in order, in one group with the offset of the next poll', async () => {
  const of = await open()
  const [life] = of.bots.lives
  assert(life !== undefined)
  const { onCommitted } = life
  const groups: string[][] = []
  life.onCommitted = (operations) => {
    groups.push(operations.map(({ kind }) => kind))
    onCommitted(operations)
  }
  const first = await of.origin.send(update(7), update(9))
  assert.equal(first.offset, undefined)
  assert.equal(first.token, `${token.botId}:${token.secret}`)
  assert(first.types.includes('message') && !first.types.includes('chat_member'))
  await untilPolled(of)
  assert.equal(of.origin.polls.at(-1)?.offset, 10)
  assert.deepEqual(await pending(of), [7, 9])
  assert.deepEqual(groups, [['push', 'push', 'bot']])
  assert.equal(recordOf(of)?.offset, 10)
})

test('an update that was stored before is stored once, and an origin that sends nothing else is left alone for a while', async () => {
  const of = await open()
  await of.origin.send(update(7))
  await of.origin.send(update(7), update(8))
  await of.origin.send(update(7), update(8))
  assert((await untilPolled(of)) >= 1_000)
  assert.deepEqual(await pending(of), [7, 8])
  assert.match((await of.bots.relays.get(botId)).reason ?? '', /repeats/)
})

test('an update that is twice in an answer is stored once', async () => {
  const of = await open()
  await of.origin.send(update(7), update(7), update(8))
  await untilPolled(of)
  assert.deepEqual(await pending(of), [7, 8])
})

test('the answer to a poll is dropped whose relay has moved on', async () => {
  const of = await open()
  await of.origin.send(update(7))
  await untilPolled(of)
  const bot = of.bots.registry.bots.loaded(botId)
  const relay = recordOf(of)
  assert(bot !== undefined && relay !== undefined)
  const update8 = Buffer.from('{"message":{}}')
  const verdict = { typeNumber: 0, orderingKey: '' }
  const updates = [{ updateId: 8, update: update8, verdict, raw: Buffer.alloc(0) }]
  const target = { bot, counters: of.bots.counters, assertAccepting: () => undefined }
  const store = (polled: StoredRelay) =>
    storeRelayed(target, { polled, updates }, async () => undefined)
  assert.equal(await store({ ...relay, offset: 7 }), undefined)
  assert.equal(await store({ ...relay, setAtMs: 1 }), undefined)
  assert.equal(await store({ ...relay, from: 'https://a.example' }), undefined)
  assert.deepEqual(await pending(of), [7])
  assert.equal((await store(relay))?.pushed, 1)
})

test('other work has its turn while the updates of a large answer are checked', async (t) => {
  const of = await open()
  await of.origin.send(update(7))
  await untilPolled(of)
  const bot = of.bots.registry.bots.loaded(botId)
  const polled = recordOf(of)
  assert(bot !== undefined && polled !== undefined)
  const verdict = { typeNumber: 0, orderingKey: '' }
  const update8 = Buffer.from('{"message":{}}')
  const raw = Buffer.alloc(80 * kib)
  const updates = Array.from({ length: 100 }, (_, nth) => {
    return { updateId: 8 + nth, update: update8, verdict, raw }
  })
  const soon = t.mock.method(bot.main.clock, 'soon')
  const target = { bot, counters: of.bots.counters, assertAccepting: () => undefined }
  await storeRelayed(target, { polled, updates }, async () => undefined)
  // Three of them have less than 256 KiB.
  assert(soon.mock.callCount() >= 33, `${soon.mock.callCount()} turns`)
})

test('a shard that is read anew goes on after the last update', async () => {
  const of = await open()
  await of.origin.send(update(7))
  const [life] = of.bots.lives
  assert(life !== undefined)
  await untilPolled(of)
  await of.bots.wait(of.bots.resetShard(life.shard))
  await untilPolled(of)
  assert.equal(of.origin.polls.at(-1)?.offset, 8)
})

test('an answer is dropped whose shard has left meanwhile, and the next owner stores it once', async () => {
  const store = new MemoryStore()
  const of = await open(store)
  const { shard } = of.queue
  of.bots.refused.onKeep = () => void of.bots.relays.forget(shard)
  await of.origin.send(update(7), { update_id: 8, guest_message: {} })
  assert.equal(recordOf(of)?.offset, undefined)
  assert.deepEqual(await pending(of), [])
  of.bots.relays.start(shard)
  of.bots.startFleet([shard])
  await of.origin.send(update(7))
  await untilPolled(of)
  assert.deepEqual(await pending(of), [7])
})

test('a failure that may pass is tried again at once, and pauses the relay when it stays', async () => {
  const of = await open()
  const down = { reason: 'The origin cannot be reached', isPassing: true }
  await of.origin.fail(down)
  assert.equal(await untilPolled(of), 0)
  assert.equal((await of.bots.relays.get(botId)).state, 'polling')
  const waits: number[] = []
  for (let nth = 0; nth < 8; nth++) {
    await of.origin.fail(down)
    waits.push(await untilPolled(of))
  }
  assert(waits.every((wait, nth) => wait >= 1_500 && (nth === 0 || wait >= (waits[nth - 1] ?? 0))))
  assert((waits.at(-1) ?? 0) <= 151_000, waits.join(' '))
  const { state, reason, next_poll: nextPoll } = await of.bots.relays.get(botId)
  assert.deepEqual([state, reason], ['paused', down.reason])
  assert(nextPoll !== null)
  await of.origin.send()
  await until(() => typesOf(of).includes('relay.resumed'))
  assert.deepEqual(typesOf(of), ['relay.paused', 'relay.resumed'])
  assert.equal(of.bots.counters.counts.relays_polling, 1)
  assert.equal(of.bots.counters.counts.relays_paused, 0)
})

test('a failure for good pauses the relay at the first time, for as long as the origin asks', async () => {
  const of = await open()
  await of.origin.fail({ reason: 'The origin asks to call less often (429)', retryAfterMs: 33_000 })
  await until(() => typesOf(of).length > 0)
  assert.equal(of.bots.events[0]?.reason, 'The origin asks to call less often (429)')
  const waitMs = await untilPolled(of)
  assert(waitMs >= 33_000 && waitMs < 33_100, `${waitMs}`)
})

test('a pause is over when the origin answers, also without an update', async () => {
  const of = await open()
  assert.equal((await of.origin.fail({ reason: 'Busy' })).waitS, 50)
  await untilPolled(of)
  assert.equal((await of.origin.send()).waitS, 0)
  assert.equal((await of.bots.relays.get(botId)).state, 'polling')
  await untilPolled(of)
  assert.equal(of.origin.polls.at(-1)?.waitS, 50)
  // Another poller disturbs only polls that wait.
  await of.origin.fail({ reason: 'Another', isOfWaiting: true })
  await untilPolled(of)
  assert.equal(of.origin.polls.at(-1)?.waitS, 50)
})

test('an update that no queue can store is kept, counted and skipped', async () => {
  const of = await open()
  const large = { message: { n: 4, text: 'x'.repeat(2_000) } }
  const deep = JSON.parse(`${'{"a":'.repeat(70)}1${'}'.repeat(70)}`)
  await of.origin.send(
    update(1),
    { update_id: 2, guest_message: {} },
    { update_id: 3, message: deep },
    { update_id: 4, ...large },
    { update_id: 5 },
    update(6, { poll: {} }),
    update(7),
  )
  await untilPolled(of)
  assert.deepEqual(await pending(of), [1, 7])
  assert.deepEqual(
    of.bots.refused.kept.map(({ updateId }) => updateId),
    [2, 3, 4, 5, 6],
  )
  assert.equal(of.origin.polls.at(-1)?.offset, 8)
  assert.equal(of.bots.counters.counts.relay_updates_refused, 5)
  const [event] = of.bots.events
  assert.deepEqual([event?.type, event?.count], ['relay.refused', 5])
  const { state, refused, relayed } = await of.bots.relays.get(botId)
  assert.deepEqual([state, refused, relayed], ['polling', 5, 2])
})

test('nothing is skipped that could not be kept for a look', async () => {
  const of = await open()
  of.bots.refused.isFailing = true
  await of.origin.send(update(1), { update_id: 2, guest_message: {} })
  await untilPolled(of)
  assert.equal(of.origin.polls.at(-1)?.offset, undefined)
  assert.deepEqual(await pending(of), [])
  of.bots.refused.isFailing = false
  await of.origin.send(update(1), { update_id: 2, guest_message: {} })
  await untilPolled(of)
  assert.equal(of.origin.polls.at(-1)?.offset, 3)
})

test('a full queue pauses the relay, which goes on where it was', async () => {
  const of = await open()
  const seven = [1, 2, 3, 4, 5, 6, 7].map((id) => update(id))
  await of.origin.send(...seven)
  await untilPolled(of)
  assert.equal(of.origin.polls.at(-1)?.offset, 6)
  assert.equal((await of.bots.relays.get(botId)).state, 'paused')
  await of.origin.send(...seven.slice(5))
  assert((await untilPolled(of)) <= 10_050)
  assert.equal(of.origin.polls.at(-1)?.offset, 6)
  for (let times = 0; times < 8; times++) {
    await of.origin.send(...seven.slice(5))
    assert((await untilPolled(of)) <= 10_050)
  }
  const { updates } = of.queue
  await of.bots.wait(Promise.resolve(updates.advance(updates.nextId, 'confirm')))
  await of.origin.send(...seven.slice(5))
  await untilPolled(of)
  assert.deepEqual(await pending(of), [6, 7])
  assert.equal((await of.bots.relays.get(botId)).state, 'polling')
})

test('an update that is refused behind a full queue is kept once', async () => {
  const of = await open()
  const all = [1, 2, 3, 4, 5, 6].map((id) => update(id))
  const refused = { update_id: 7, guest_message: {} }
  await of.origin.send(...all, refused)
  await untilPolled(of)
  await of.origin.send(...all.slice(5), refused)
  await untilPolled(of)
  assert.equal(of.bots.refused.kept.length, 1)
  assert.equal(of.origin.polls.at(-1)?.offset, 6)
})

test('a full disk pauses the relay, and nothing is skipped', async () => {
  const of = await open()
  of.bots.isDiskLow = () => true
  await of.origin.send(update(1))
  await untilPolled(of)
  assert.equal(of.origin.polls.at(-1)?.offset, undefined)
  of.bots.isDiskLow = () => false
  await of.origin.send(update(1))
  await untilPolled(of)
  assert.deepEqual(await pending(of), [1])
})

test('ids that begin anew after six quiet days are taken, and the last batch is not doubled', async () => {
  const of = await open()
  await of.origin.send(update(1_000_000), update(1_000_001))
  await untilPolled(of)
  of.bots.clock.jump(6 * dayMs)
  await of.origin.send()
  await untilPolled(of)
  assert.equal(of.origin.polls.at(-1)?.offset, undefined)
  await of.origin.send(update(5), update(1_000_001))
  await untilPolled(of)
  assert.equal(of.origin.polls.at(-1)?.offset, 1_000_002)
  // Both are of the new numbering then, of which an origin has one.
  assert.deepEqual(await pending(of), [1_000_000, 1_000_001, 5])
})

test('an origin that counts anew goes on when the relay is removed and set again, as it says', async () => {
  const of = await open()
  await of.origin.send(update(999_999_999_999_999))
  await of.origin.send(update(5))
  await untilPolled(of)
  assert.match((await of.bots.relays.get(botId)).reason ?? '', /remove the relay and set it again/)
  await of.bots.wait(of.bots.relays.remove(botId))
  await of.bots.relays.set(botId, { from: fakeFrom, token })
  await of.origin.send(update(5))
  await untilPolled(of)
  assert.equal(of.origin.polls.at(-1)?.offset, 6)
  const found = await of.queue.updates.pendingAfter(0, 10)
  assert.deepEqual(
    found.map((each) => each.body().toString().includes('"n":5')),
    [false, true],
  )
})

test('a lower numbering goes on from its own offset', async () => {
  const of = await open()
  await of.origin.send(update(1_000_000))
  await untilPolled(of)
  of.bots.clock.jump(7 * dayMs)
  await of.origin.send()
  await of.bots.clock.advance(1_000)
  await of.origin.send(update(5))
  await of.origin.send(update(6))
  await untilPolled(of)
  assert.equal(of.origin.polls.at(-1)?.offset, 7)
  assert.equal(recordOf(of)?.offset, 7)
})

test('an answer that is too large is asked for in smaller parts', async () => {
  const of = await open()
  const tooLarge = { reason: 'too large', isTooLarge: true }
  const limits: number[] = []
  for (let nth = 0; nth < 4; nth++) limits.push((await of.origin.fail(tooLarge)).limit)
  assert.deepEqual(limits, [100, 25, 6, 1])
  await untilPolled(of)
  assert.equal((await of.bots.relays.get(botId)).reason, 'too large')
  await of.origin.send(update(1))
  await untilPolled(of)
  assert.equal(of.origin.polls.at(-1)?.limit, 2)
})

const cut = { status: 200, retryAfter: undefined, nowMs: 0, isCut: true } as const

test('an update that alone is too large for an answer is kept, counted and skipped, and the limit grows again', async () => {
  const of = await open()
  const body = Buffer.from('{"ok":true,"result":[{"update_id":7,"message":{"text":"xxx')
  await of.origin.answer(readOriginAnswer({ ...cut, body }))
  await untilPolled(of)
  const { offset, limit } = of.origin.polls.at(-1) ?? {}
  assert.deepEqual([offset, limit], [8, 100])
  const [kept] = of.bots.refused.kept
  assert.equal(kept?.raw.toString(), '{"update_id":7,"message":{"text":"xxx')
  const [event] = of.bots.events
  assert.deepEqual(
    [event?.type, event?.count, event?.reason],
    ['relay.refused', 1, 'Update too large: got more than 37 bytes'],
  )
  await of.origin.answer(readOriginAnswer({ ...cut, body }))
  await untilPolled(of)
  assert.match((await of.bots.relays.get(botId)).reason ?? '', /repeats/)
  await of.origin.send(update(8))
  await untilPolled(of)
  assert.deepEqual(await pending(of), [8])
})

test('an origin that answers at once without updates is not called in a loop', async () => {
  const of = await open()
  await of.origin.send()
  assert((await untilPolled(of)) >= 950)
})

test('an origin that sends only updates that are skipped is not called in a loop', async () => {
  const of = await open()
  await of.origin.send({ update_id: 1, guest_message: {} })
  assert((await untilPolled(of)) >= 950)
  await of.origin.send({ update_id: 2, guest_message: {} }, update(3))
  assert.equal(await untilPolled(of), 0)
})

test('a type that the bot does not want any more is not stored, and the relay asks for others', async () => {
  const of = await open()
  await until(() => of.origin.isPolled)
  const poll = of.queue.setAllowedTypes(1 << 15)
  await of.bots.wait(Promise.resolve(poll))
  await untilPolled(of)
  await of.origin.send(update(1), { update_id: 2, poll: { n: 2 } })
  await untilPolled(of)
  assert.deepEqual(await pending(of), [2])
  assert.deepEqual(of.origin.polls.at(-1)?.types, ['poll'])
})

test('a poll that waits is asked anew when the bot wants other types, and not in a loop', async () => {
  const of = await open()
  await until(() => of.origin.isPolled)
  await of.bots.clock.advance(20_000)
  const want = async (types: number): Promise<unknown> =>
    of.bots.wait(Promise.resolve(of.queue.setAllowedTypes(types)))
  await want(1 << 15)
  assert((await untilPolled(of)) < 1_000)
  assert.deepEqual(of.origin.polls.at(-1)?.types, ['poll'])
  await want(1)
  assert((await untilPolled(of)) >= 950)
  assert.deepEqual(of.origin.polls.at(-1)?.types, ['message'])
  const { state } = await of.bots.relays.get(botId)
  assert.deepEqual([state, typesOf(of)], ['polling', []])
})

test('the same bot at the same origin goes on, with a new token too; another bot begins anew', async () => {
  const of = await open()
  await of.origin.send(update(7))
  await untilPolled(of)
  const secret = 'BBF-abcdefghijklmnopqrstuvwxyz_0123'
  await of.bots.relays.set(botId, { from: fakeFrom, token: { ...token, secret } })
  await untilPolled(of)
  assert.deepEqual(
    [of.origin.polls.at(-1)?.offset, of.origin.polls.at(-1)?.token],
    [8, `${token.botId}:${secret}`],
  )
  await of.bots.relays.set(botId, { from: fakeFrom, token: undefined })
  await untilPolled(of)
  assert.equal(of.origin.polls.at(-1)?.offset, 8)
  const another = { from: fakeFrom, token: { ...token, botId: 9_999 } }
  await of.bots.wait(of.bots.relays.set(botId, another))
  await untilPolled(of)
  assert.equal(of.origin.polls.at(-1)?.offset, undefined)
})

test('a relay is refused whose origin is not listed, and whose token is missing', async () => {
  const of = await open()
  const code = { code: 'BAD_REQUEST' }
  await assert.rejects(of.bots.relays.set(botId, { from: 'https://a.example', token }), code)
  await of.bots.relays.remove(botId)
  await assert.rejects(of.bots.relays.set(botId, { from: fakeFrom, token: undefined }), code)
  await assert.rejects(of.bots.relays.get(botId), { code: 'NO_RELAY' })
  await assert.rejects(of.bots.relays.remove(botId), { code: 'NO_RELAY' })
})

test('the token is needed again for another origin, where the relay begins anew', async () => {
  const of = await open()
  await of.origin.send(update(7))
  await untilPolled(of)
  await assert.rejects(of.bots.relays.set(botId, { from: otherFrom, token: undefined }), {
    code: 'BAD_REQUEST',
    message: /token/,
  })
  assert.equal(recordOf(of)?.from, fakeFrom)
  await of.bots.wait(of.bots.relays.set(botId, { from: otherFrom, token }))
  await untilPolled(of)
  assert.equal(of.origin.polls.at(-1)?.offset, undefined)
})

test('an update of a relay lives as long as one that is pushed, and is checked as such', async () => {
  const of = await open()
  await of.bots.registry.change(botId, { ttlS: 60, isValidated: true })
  const from = { id: 5, is_bot: false, first_name: 'A' }
  const chat = { id: 5, type: 'private' }
  await of.origin.send(update(1), { update_id: 2, message: { message_id: 1, date: 1, chat, from } })
  await untilPolled(of)
  assert.deepEqual(
    of.bots.refused.kept.map(({ updateId }) => updateId),
    [1],
  )
  const [stored] = await of.queue.updates.pendingAfter(0, 10)
  assert.equal(stored?.expiresAtS, Math.floor(of.bots.clock.nowMs() / 1_000) + 60)
})

test('a bot that could not be removed keeps its relay', async () => {
  const of = await open()
  await untilPolled(of)
  of.bots.refused.isFailing = true
  await assert.rejects(of.bots.wait(of.bots.registry.remove(botId)))
  of.bots.refused.isFailing = false
  await untilPolled(of)
  await of.origin.send(update(1))
  await untilPolled(of)
  assert.equal(of.bots.counters.counts.updates_relayed, 1)
})

test('a relay that is removed polls no more, and stores nothing', async () => {
  const of = await open()
  await untilPolled(of)
  await of.bots.relays.remove(botId)
  assert.equal(of.origin.isPolled, false)
  await of.bots.clock.advance(10_000)
  assert.equal(of.origin.polls.length, 1)
  assert.equal(of.bots.counters.counts.relays_polling, 0)
})

test('an origin is told of the last answer that was stored when its relay ends, so that nobody gets that again', async () => {
  const of = await open()
  await of.origin.send(update(7))
  // It may not have taken the offset.
  await of.origin.fail({ reason: 'Busy', retryAfterMs: 60_000 })
  const removed = of.bots.relays.remove(botId)
  const { offset, limit, waitS } = await of.origin.send(update(8))
  assert.deepEqual([offset, limit, waitS], [8, 1, 0])
  await of.bots.wait(removed)
  assert.equal(of.origin.isPolled, false)
  assert.deepEqual(await pending(of), [7])
  await of.bots.relays.set(botId, { from: fakeFrom, token })
  await of.origin.send(update(8))
  await untilPolled(of)
  await of.bots.wait(
    of.bots.relays.set(botId, { from: fakeFrom, token: { ...token, botId: 9_999 } }),
  )
  assert.equal(of.origin.polls.at(-2)?.offset, 9)
})

test('a relay ends although its origin does not answer', async () => {
  const of = await open()
  await of.origin.send(update(7))
  await untilPolled(of)
  await of.bots.wait(of.bots.relays.remove(botId))
  assert.equal(of.origin.isPolled, false)
})

test('a relay ends with its bot, whose refused updates are forgotten', async () => {
  const of = await open()
  await of.origin.send({ update_id: 2, guest_message: {} })
  await untilPolled(of)
  assert.equal(of.bots.refused.kept.length, 1)
  await of.bots.wait(of.bots.registry.remove(botId))
  assert.equal(of.bots.refused.kept.length, 0)
  assert.equal(of.origin.isPolled, false)
  await of.bots.clock.advance(10_000)
  assert.equal(of.origin.isPolled, false)
})

test('a token that cannot be read, and an origin that is not listed any more, pause the relay', async () => {
  const of = await open()
  of.relays.hasSameKey = false
  await of.origin.send()
  await of.bots.clock.advance(1_000)
  assert.match((await of.bots.relays.get(botId)).reason ?? '', /admin key/)
  of.relays.isListed = false
  await of.bots.clock.advance(10_000)
  assert.match((await of.bots.relays.get(botId)).reason ?? '', /--relay-from/)
  const polls = of.origin.polls.length
  await of.bots.clock.advance(10_000)
  assert.equal(of.origin.polls.length, polls)
})

test('the health of a bot says why its relay is paused, also where no origin is listed any more', async () => {
  const of = await open()
  await of.origin.send()
  assert.deepEqual(await healthOf(of.bots), [0, undefined, undefined])
  of.relays.isListed = false
  await of.bots.clock.advance(10_000)
  const expected = [
    1,
    'degraded',
    'the relay is paused: --relay-from does not list the origin: list it, or remove the relay',
  ]
  assert.deepEqual(await healthOf(of.bots), expected)
  await of.bots.close()
  const without = await BotsLife.open({ store: () => of.store })
  for (const { shard } of without.lives) {
    without.relays.start(shard)
    without.startFleet([shard])
  }
  await without.fleet.summary()
  await without.clock.advance(1_000)
  assert.deepEqual(await healthOf(without), expected)
})

/** How many bots are degraded, the word of the bot, and what its sentence says of the relay. */
async function healthOf({ fleet, registry }: BotsLife): Promise<unknown[]> {
  const { bots: found } = await fleet.list({ state: 'degraded', after: 0, limit: 9 })
  const { webhook } = (await registry.report(botId)).queue
  return [
    found.length,
    webhook.health,
    /the relay is paused: [^;]*/.exec(webhook.healthReason)?.[0],
  ]
}
