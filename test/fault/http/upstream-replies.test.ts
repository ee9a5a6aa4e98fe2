/**
 * Tests the forwarding of webhook replies to an upstream server that is slow, broken or unreachable, over real
 * sockets.
 */
import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { type TestContext, test } from 'node:test'
import type { Counters } from '../../../src/kit/surroundings.ts'
import {
  UpstreamReplies,
  webhookRepliesBytesMax,
  webhookRepliesMax,
  webhookRepliesPerBotMax,
  webhookReplyConnectionsMax,
  webhookReplyConnectionsPerBotMax,
  webhookReplyTimeoutMs,
} from '../../../src/bot-api/upstream-replies.ts'
import type { ReplyIntake } from '../../../src/delivery/attempts/reply-reader.ts'
import { FakeClock } from '../../support/kit/fake-clock.ts'
import {
  type FakeUpstream,
  startUpstream,
  type UpstreamAnswer,
} from '../../support/network/fake-upstream.ts'
import { endpoint, stopAfter } from '../../support/webhook/webhook-endpoints.ts'
import { setUpWebhook } from '../../support/webhook/webhook-setup.ts'
import { until } from '../../support/kit/until.ts'

interface World {
  readonly upstream: FakeUpstream
  readonly replies: UpstreamReplies
  readonly clock: FakeClock
  readonly counts: Record<string, number>
  readonly intakeOf: (sealedToken: string) => ReplyIntake
}

async function open(t: TestContext, answer?: UpstreamAnswer): Promise<World> {
  const upstream = await startUpstream(t, answer)
  const clock = new FakeClock()
  const counts: Record<string, number> = {}
  const counters: Counters = {
    add: (name, amount) => {
      counts[name] = (counts[name] ?? 0) + amount
    },
    observe: () => undefined,
  }
  const replies = new UpstreamReplies(
    { origin: upstream.url, prefix: '/p' },
    { clock, counters },
    (sealed) => (sealed === 'void' ? undefined : `token-${sealed}`),
  )
  t.after(() => replies.close())
  const intakeOf = (sealedToken: string): ReplyIntake =>
    replies.intakeOf({ sealedToken, isTest: false })
  return { upstream, replies, clock, counts, intakeOf }
}

/** Submits a reply in the way the reader of a webhook response does. */
function give(intake: ReplyIntake, orderingKey: string, more: object = {}): void {
  const body = Buffer.from(JSON.stringify({ method: 'sendMessage', ...more }))
  assert(intake.reserve(body.length))
  intake.take({ orderingKey, contentType: 'application/json', body })
}

test('replies of one key are sent in their order, replies of others at the same time, and each once', async (t) => {
  const waiting: ServerResponse[] = []
  const { upstream, replies, counts, intakeOf } = await open(t, (call, response) => {
    if (call.text.includes('"first"')) waiting.push(response)
    else response.end()
  })
  const intake = intakeOf('a')
  give(intake, 'key', { name: 'first' })
  give(intake, 'key', { name: 'second' })
  give(intake, 'other', { name: 'third' })
  await upstream.atLeast(2)
  const names = upstream.calls.map(({ text }) => JSON.parse(text).name)
  assert.deepEqual(new Set(names), new Set(['first', 'third']))
  // A failed reply is not sent again and does not delay others.
  for (const response of waiting) response.writeHead(500).end()
  await replies.settled()
  assert.deepEqual(upstream.calls.map(({ text }) => JSON.parse(text).name).at(-1), 'second')
  assert(upstream.calls.every(({ url }) => url === '/p/bottoken-a/sendMessage'))
  assert.deepEqual(counts, { webhook_replies_failed: 1, webhook_replies_sent: 2 })
})

test('an upstream server that hangs gets few connections, and replies that wait too long are dropped', async (t) => {
  const { upstream, replies, clock, counts, intakeOf } = await open(t, () => undefined)
  for (let bot = 0; bot < 30; bot++) give(intakeOf(`${bot}`), 'key')
  const late = intakeOf('late')
  give(late, 'key')
  give(late, 'key')
  await upstream.atLeast(webhookReplyConnectionsMax)
  await clock.advance(webhookReplyTimeoutMs - 1)
  assert.equal(upstream.calls.length, webhookReplyConnectionsMax)
  assert.deepEqual(counts, {})
  await clock.advance(1)
  await replies.settled()
  const { webhook_replies_failed: failed = 0, webhook_replies_dropped: dropped = 0 } = counts
  assert.equal(failed + dropped, 32)
  assert.equal(clock.timers, 0)
})

test('replies of a bot that hang leave connections to others', async (t) => {
  const { upstream, replies, clock, counts, intakeOf } = await open(t, (call, response) => {
    if (call.url.includes('token-b')) response.end()
  })
  const hanging = intakeOf('a')
  for (let nth = 0; nth < webhookReplyConnectionsMax; nth++) give(hanging, `${nth}`)
  await upstream.atLeast(webhookReplyConnectionsPerBotMax)
  give(intakeOf('b'), 'key')
  await upstream.atLeast(webhookReplyConnectionsPerBotMax + 1)
  await until(() => counts['webhook_replies_sent'] === 1)
  assert.equal(upstream.calls.length, webhookReplyConnectionsPerBotMax + 1)
  await clock.advance(webhookReplyTimeoutMs)
  await replies.settled()
  const { webhook_replies_failed: failed = 0, webhook_replies_dropped: dropped = 0 } = counts
  assert.equal(failed + dropped, webhookReplyConnectionsMax)
  const before = upstream.calls.length
  give(hanging, 'again')
  await upstream.atLeast(before + 1)
})

test('one bot and all bots together have limits in number and in bytes', async (t) => {
  const { upstream, replies, counts, intakeOf } = await open(t, () => undefined)
  const greedy = intakeOf('greedy')
  for (let nth = 0; nth <= webhookRepliesPerBotMax; nth++) give(greedy, `${nth}`)
  assert.equal(counts['webhook_replies_dropped'], 1)
  for (let bot = 0; bot < 10; bot++) {
    const intake = intakeOf(`${bot}`)
    for (let nth = 0; nth < webhookRepliesPerBotMax; nth++) give(intake, `${nth}`)
  }
  assert.equal(
    counts['webhook_replies_dropped'],
    1 + 11 * webhookRepliesPerBotMax - webhookRepliesMax,
  )
  await upstream.stop()
  await replies.settled()
  // All of the reserved space is free again.
  assert(greedy.reserve(webhookRepliesBytesMax))
  assert(!intakeOf('other').reserve(1))
  greedy.release(webhookRepliesBytesMax)
  give(greedy, 'key')
  await replies.settled()
})

test('responses without a method take no room, and a token that cannot be opened makes no call', async (t) => {
  const { upstream, replies, counts, intakeOf } = await open(t)
  const intake = intakeOf('void')
  give(intake, 'key', { method: 'getMe' })
  assert.deepEqual(counts, {})
  give(intake, 'key')
  await replies.settled()
  assert.deepEqual(counts, { webhook_replies_dropped: 1 })
  assert.deepEqual(upstream.calls, [])
  assert(intake.reserve(webhookRepliesBytesMax))
})

test('a delivery counts whatever happens to its reply, whether it is whole, cut off, or too large', async (t) => {
  const { upstream, replies, counts, intakeOf } = await open(t)
  const bodies = ['{"method":"sendA"}', `{"method":"sendB","text":"${'b'.repeat(900_000)}"}`]
  const { url, received } = await endpoint(t, (response, _received, index) => {
    response.writeHead(200, { 'Content-Type': 'application/json' })
    if (index < 2) response.end(bodies[index])
    else if (index === 2) response.end('c'.repeat(2_000_000))
    else if (index === 3) response.write('{"method":"sendD"', () => response.destroy())
    else response.end('{"method":"sendE"}')
  })
  const setup = stopAfter(t, setUpWebhook({ url }, { replies: intakeOf('a') }))
  for (let updateId = 1; updateId <= 5; updateId++) setup.source.push({ updateId })
  setup.dispatcher.start(0)
  await setup.source.empty()
  await upstream.atLeast(3)
  await replies.settled()
  assert.deepEqual(
    upstream.calls.map(({ url: path }) => path.replace('/p/bottoken-a/', '')),
    ['sendA', 'sendB', 'sendE'],
  )
  assert.equal(upstream.calls[1]?.bytes, bodies[1]?.length)
  // The status line alone decides about an update: the fourth, whose reply was cut off, was not sent again.
  assert.equal(received.length, 5)
  assert.deepEqual(counts, { webhook_replies_sent: 3, webhook_replies_dropped: 1 })
  await until(() => setup.source.updates.length === 0)
})
