/** How late updates are, counted by real workers that are killed and replaced, and what GET /v1/history makes of it. */
import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { once } from 'node:events'
import { test, type TestContext } from 'node:test'
import { until } from '../support/kit/until.ts'
import { type Server, startServer } from '../support/server/server.ts'

/** Returns the samples of /metrics by their names with labels. */
async function samplesOf(server: Server): Promise<(name: string) => number> {
  const { text } = await server.admin('GET', '/metrics')
  const samples = new Map(
    text.split('\n').map((line) => {
      const [name = '', value] = line.split(' ')
      return [name, Number(value)]
    }),
  )
  return (name) => samples.get(`postbote_${name}`) ?? 0
}

/** An endpoint that takes this long for each update. */
async function slowEndpoint(t: TestContext, delayMs: number): Promise<string> {
  const endpoint = createServer((request, response) => {
    request.resume()
    request.once('end', () => setTimeout(() => response.end(), delayMs))
  })
  endpoint.listen(0, '127.0.0.1')
  await once(endpoint, 'listening')
  t.after(() => endpoint.close())
  const address = endpoint.address()
  assert(address !== null && typeof address === 'object')
  return `http://127.0.0.1:${address.port}/`
}

test('an endpoint that takes 300 ms lands in its bucket, and counts are those of the ledger across a reload and killed workers', async (t) => {
  const server = await startServer(t, { workers: 2, flags: ['--local'] })
  const [hooked, polled] = [await server.register(), await server.register()]
  const url = await slowEndpoint(t, 300)
  await server.call(hooked.token, 'setWebhook', { url })
  let pushed = 0
  const round = async (): Promise<void> => {
    for (let nth = 0; nth < 5; nth++) {
      await server.push(hooked.botId, { poll: { id: `${nth}` } })
      await server.push(polled.botId, { poll: { id: `${nth}` } })
      pushed += 1
    }
    const { body } = await server.call(polled.token, 'getUpdates', { timeout: 5 })
    const last = body.result.at(-1).update_id
    await server.call(polled.token, 'getUpdates', { offset: last + 1 })
    await until(async () => {
      const sample = await samplesOf(server)
      return (
        sample('delivery_seconds_count{mode="webhook"}') === pushed &&
        sample('delivery_seconds_count{mode="polling"}') === pushed
      )
    })
    // What a worker has counted must be on disk before it is killed: removals are written within 20 ms.
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  await round()
  for (const pid of await server.workerPids()) process.kill(pid, 'SIGKILL')
  await round()
  await server.reload()
  await round()
  const sample = await samplesOf(server)
  assert.equal(sample('updates_confirmed_total'), pushed)
  assert.equal(sample('updates_delivered_total'), pushed)
  assert.equal(sample('push_seconds_count'), 2 * pushed)
  assert.equal(sample('attempt_seconds_count'), pushed)
  assert.equal(sample('attempt_seconds_bucket{le="0.25"}'), 0, 'none was faster')
  assert.equal(sample('attempt_seconds_bucket{le="0.5"}'), pushed)
  assert.equal(sample('delivery_seconds_bucket{mode="webhook",le="0.25"}'), 0)
  assert.equal(sample('sync_seconds_count'), sample('store_groups_total'))
  // The primary adds to the history every few seconds.
  const { body: history } = await until(async () => {
    const answer = await server.admin('GET', '/v1/history?minutes=3')
    const delivered: number[] = answer.body.updates.delivered
    return delivered.reduce((sum, count) => sum + count, 0) === pushed ? answer : undefined
  })
  const p99: (number | null)[] = history.delivery.webhook.p99_ms
  assert.ok(Math.max(...p99.map((ms) => ms ?? 0)) > 250)
})
