import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import {
  type BusyClient,
  MetricsWatcher,
  MixedCaller,
  numberOf,
  Pushed,
  SinglePusher,
  StreamPusher,
} from '../support/producers/busy-clients.ts'
import { freshHints, noHints, staleHints } from '../support/producers/push-streams.ts'
import { PollingBot } from '../support/bots/polling-bot.ts'
import { type Server, startServer } from '../support/server/server.ts'
import { drawnRuns } from '../support/kit/drawn-runs.ts'
import { Vandal } from '../support/kit/vandal.ts'
import { startSink } from '../support/webhook/webhook-sink.ts'
import { until } from '../support/kit/until.ts'
import { outputOf } from '../support/programs/postbote.ts'

const reloads = Number(process.env['TEST_RELOADS'] ?? drawnRuns(6))

test('under load no reload fails a request, loses, repeats or reorders an update, or leaves anything over', async (t) => {
  const server = await startServer(t, { workers: 2, flags: ['--local'] })
  const busy: { stop(): Promise<void> }[] = []
  // The server is killed by then. Without this, they would call it forever after a failed assertion.
  t.after(() => Promise.all(busy.map((each) => each.stop())))
  const bots = await Promise.all(Array.from({ length: 20 }, () => server.register()))
  const polled = bots.slice(0, 12)
  const hooked = bots.slice(12)
  const sink = await startSink(t, (_delivery, response) => {
    setTimeout(() => response.end(), 3)
  })
  for (const { botId, token } of hooked) {
    const { body } = await server.call(token, 'setWebhook', { url: sink.url(`/${botId}`) })
    assert.equal(body.ok, true)
  }
  const descriptors = (): number => readdirSync(`/proc/${server.primaryPid}/fd`).length
  const descriptorsBefore = descriptors()
  const pushed = new Pushed()
  const pollers = polled.map(
    ({ token }, nth) =>
      new PollingBot({ token, server: () => server, timeoutS: nth % 2 === 0 ? 5 : 1 }),
  )
  busy.push(...pollers)
  // Each bot has one producer, which numbers its updates.
  const singles = [0, 1, 2, 12, 13].map((nth) => [bots[nth]!])
  const mixed = bots.slice(9, 12).concat(bots.slice(18))
  const streamed = [
    bots.slice(3, 5).concat(bots.slice(14, 15)),
    bots.slice(5, 7).concat(bots.slice(15, 16)),
    bots.slice(7, 9).concat(bots.slice(16, 18)),
  ]
  const hints = [noHints, freshHints, staleHints()]
  const clients: BusyClient[] = [
    ...singles.map((bot, nth) => {
      return new SinglePusher(server, bot, pushed, { keepAlive: nth % 2 === 0, pauseMs: 20 })
    }),
    // As fast as possible: at every moment while a worker leaves, one push is forwarded to it or by it.
    new SinglePusher(server, mixed, pushed, { keepAlive: true, pauseMs: 0 }),
    ...streamed.map((some, nth) => new StreamPusher(server, some, pushed, hints[nth])),
    ...[true, true, false].map((keepAlive) => new MixedCaller(server, bots, keepAlive)),
    new MetricsWatcher(server),
    // Its own bot pays for what it does.
    new Vandal(server, await server.register()),
  ]
  busy.push(...clients)

  for (let nth = 0; nth < reloads; nth++) {
    await outputOf(['reload', '--dir', server.dir])
  }

  await Promise.all(clients.map((client) => client.stop()))
  for (const client of clients) {
    assert.deepEqual(client.failures, [])
    assert(client.answered > 0)
  }
  for (const [nth, poller] of pollers.entries()) {
    const ids = pushed.ids(polled[nth]!.botId)
    await until(() => poller.received.length >= ids.length)
    await poller.stop()
    assert.deepEqual(poller.failures, [])
    const received = poller.received.map(({ update }) => update.update_id)
    assertSame({ server, bot: `polling bot ${nth}`, received, pushed: ids })
    assert(poller.received.every(({ update }, number) => numberOf(update) === number))
  }
  for (const [nth, { botId }] of hooked.entries()) {
    const ids = pushed.ids(botId)
    const delivered = (): number[] =>
      sink.deliveries
        .filter(({ path }) => path === `/${botId}`)
        .map(({ update }) => update.update_id)
    await until(() => delivered().length >= ids.length)
    assertSame({ server, bot: `webhook ${nth}`, received: delivered(), pushed: ids })
  }
  if (process.env['TEST_LOG'] !== undefined) process.stderr.write(server.output())
  t.diagnostic(movesOf(server))
  t.diagnostic(`${bots.reduce((sum, { botId }) => sum + pushed.ids(botId).length, 0)} updates`)

  // Nothing of the replaced workers is left.
  await until(() => server.workerPids().length === 2, 10_000)
  assert.deepEqual(readdirSync(join(server.dir, 'run')).toSorted(), [
    'control.sock',
    'shared-memory',

    'w0-link.sock',

    'w1-link.sock',
  ])
  await until(() => descriptors() === descriptorsBefore)
  assert.equal(server.output().match(/"level":[4-6]0/g), null, server.output())
})

interface Comparison {
  readonly server: Server
  readonly bot: string
  readonly received: readonly number[]
  readonly pushed: readonly number[]
}

/** Asserts that two lists of ids are equal. If not, says where they part, and what the server wrote. */
function assertSame({ server, bot, received, pushed }: Comparison): void {
  let at = 0
  while (at < received.length && received[at] === pushed[at]) at += 1
  if (at === received.length && at === pushed.length) return
  const around = (ids: readonly number[]): string => ids.slice(Math.max(at - 3, 0), at + 9).join()
  const counts = `${received.length} updates instead of ${pushed.length}`
  const lists = `${around(received)} instead of ${around(pushed)}`
  assert.fail(`${bot} got ${counts}, around position ${at}: ${lists}\n${server.output()}`)
}

/** How long the shards were closed. */
function movesOf(server: Server): string {
  const moves = [...server.output().matchAll(/"tookMs":\{"leave":(\d+),"open":(\d+)\}/g)]
    .map(([, leave, open]) => ({ leave: Number(leave), open: Number(open) }))
    .toSorted((a, b) => a.leave + a.open - b.leave - b.open)
  const [median, last] = [moves[moves.length >> 1], moves.at(-1)]
  return `${moves.length} moves: ms median ${JSON.stringify(median)}, longest ${JSON.stringify(last)}`
}
