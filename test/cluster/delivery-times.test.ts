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

/** What was counted is on disk some 20 ms later; what is not is delivered again, and counts again. */
function untilWritten(): Promise<void> {
  return new Promise((resolve) => void setTimeout(resolve, 100))
}

function total(counts: readonly (number | null)[]): number {
  return counts.reduce<number>((sum, count) => sum + (count ?? 0), 0)
}

test('an endpoint that takes 300 ms lands in its bucket, and counts are those of the ledger across a reload and killed workers', async (t) => {
  const server = await startServer(t, { workers: 2, flags: ['--local'] })
  const [hooked, polled] = [await server.register(), await server.register()]
  const url = await slowEndpoint(t, 300)
  await server.call(hooked.token, 'setWebhook', { url })
  let pushed = 0
  /** Pushes to both, and has the bot confirm what it got before `beforeConfirm`. */
  const round = async (beforeConfirm = async () => {}): Promise<void> => {
    for (let nth = 0; nth < 5; nth++) {
      await server.push(hooked.botId, { poll: { id: `${nth}` } })
      await server.push(polled.botId, { poll: { id: `${nth}` } })
      pushed += 1
    }
    const { body } = await server.call(polled.token, 'getUpdates', { timeout: 5 })
    const offset = body.result.at(-1).update_id + 1
    await beforeConfirm()
    await server.call(polled.token, 'getUpdates', { offset })
    await until(async () => {
      const sample = await samplesOf(server)
      const counts = ['polling', 'webhook'].map((mode) =>
        sample(`delivery_seconds_count{mode="${mode}"}`),
      )
      return counts.every((count) => count === pushed)
    })
  }
  const untilReplaced = async (replace: () => void): Promise<void> => {
    const before = server.workerPids()
    replace()
    await until(() => server.workerPids().filter((pid) => !before.includes(pid)).length === 2)
    await until(async () => (await server.admin('GET', '/readyz')).status === 200)
  }
  const kill = (): void => server.workerPids().forEach((pid) => process.kill(pid, 'SIGKILL'))
  // The workers that have the confirm know the updates from disk only.
  await round(async () => {
    await until(async () => (await samplesOf(server))('updates_delivered_total') === pushed)
    await untilWritten()
    await untilReplaced(kill)
  })
  await untilReplaced(() => process.kill(server.primaryPid, 'SIGHUP'))
  await round()
  const sample = await samplesOf(server)
  assert.equal(sample('updates_confirmed_total'), pushed)
  assert.equal(sample('updates_delivered_total'), pushed)
  assert.equal(sample('push_seconds_count'), 2 * pushed)
  assert.equal(sample('attempt_seconds_count'), pushed)
  assert.equal(sample('attempt_seconds_bucket{le="0.25"}'), 0, 'none was faster')
  // On a busy machine some take longer.
  assert.ok(sample('attempt_seconds_bucket{le="0.5"}') > 0)
  assert.ok(sample('attempt_seconds_sum') >= 0.3 * pushed)
  assert.equal(sample('delivery_seconds_bucket{mode="webhook",le="0.25"}'), 0)
  assert.equal(sample('sync_seconds_count'), sample('store_groups_total'))
  // The primary adds to the history every few seconds.
  let history = await server.admin('GET', '/v1/history?minutes=3')
  await until(async () => {
    history = await server.admin('GET', '/v1/history?minutes=3')
    return total(history.body.updates.delivered) === pushed
  })
  assert.equal(total(history.body.updates.confirmed), pushed)
  const p99: (number | null)[] = history.body.delivery.webhook.p99_ms
  assert.ok(Math.max(...p99.map((ms) => ms ?? 0)) > 250)
})
