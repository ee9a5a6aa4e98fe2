/** `--max-total-webhook-connections` of a real server with two workers, whose bots together need more than that. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startServer } from '../support/server/server.ts'
import { startSink } from '../support/webhook/webhook-sink.ts'

const connectionsMax = 6
const bots = 10
const keys = 8
const updates = 2

test("two workers together never exceed the server's limit of connections, and every bot gets its turn", async (t) => {
  // A response takes a moment, so that all allowed connections are needed.
  const sink = await startSink(t, (_delivery, response) => {
    setTimeout(() => response.end(), 5)
  })
  const server = await startServer(t, {
    flags: ['--local', `--max-total-webhook-connections=${connectionsMax}`],
  })
  const hooked = await Promise.all(
    Array.from({ length: bots }, async () => {
      const bot = await server.register()
      const url = sink.url(`/${bot.botId}`)
      const { status, text } = await server.call(bot.token, 'setWebhook', { url })
      assert.equal(status, 200, text)
      return bot
    }),
  )
  // Verification connects without the gate, once for each setWebhook.
  sink.connections.most = 0
  const pushes = hooked.flatMap(({ botId }) =>
    Array.from({ length: keys * updates }, (_none, nth) =>
      server.push(botId, { message: { nth } }, `ordering_key=${nth % keys}`),
    ),
  )
  await Promise.all(pushes)
  await sink.atLeast(bots * keys * updates)
  assert.equal(sink.deliveries.length, bots * keys * updates)
  for (const { botId } of hooked) {
    const nths = sink.deliveries
      .filter(({ path }) => path === `/${botId}`)
      .map(({ update }) => Number(update.message?.['nth']))
    assert.equal(new Set(nths).size, keys * updates)
    for (let key = 0; key < keys; key++) {
      assert.deepEqual(
        nths.filter((nth) => nth % keys === key),
        [key, key + keys],
      )
    }
  }
  const { most } = sink.connections
  assert.ok(most > 1 && most <= connectionsMax, `${most} connections at a time`)
  t.diagnostic(
    `${most} of ${connectionsMax} connections at a time, ${sink.connections.total} in all`,
  )
})
