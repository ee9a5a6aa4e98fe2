/** A real server that uses a real proxy with a password, which is down for a while. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startServer } from '../support/server/server.ts'
import { proxyObstacle, Tinyproxy } from '../support/programs/tinyproxy.ts'
import { startSink } from '../support/webhook/webhook-sink.ts'
import { until } from '../support/kit/until.ts'

const obstacle = proxyObstacle()
const options = obstacle === undefined ? {} : { skip: obstacle }
const password = 'p4ssw0rd-of-the-proxy'

test(
  'a server with a proxy delivers only through it, survives its absence, and never shows its password',
  options,
  async (t) => {
    const proxy = await Tinyproxy.start(t, { credentials: `postbote ${password}` })
    const sink = await startSink(t)
    const server = await startServer(t, {
      // A webhook could not be at the address of the proxy, but that address itself is not judged.
      flags: ['--local', `--block-cidr=${proxy.host}/32`],
      env: { POSTBOTE_PROXY: `http://postbote:${password}@${proxy.host}:${proxy.port}` },
    })
    const said: string[] = []
    /** Returns the outcome of setWebhook for a new bot. */
    const hook = async (
      url: string,
    ): Promise<{ botId: number; token: string; outcome: string }> => {
      const bot = await server.register()
      const { text, body } = await server.call(bot.token, 'setWebhook', { url })
      said.push(text)
      return { ...bot, outcome: body.description }
    }
    const { outcome } = await hook(`http://${proxy.host}:${proxy.port}/`)
    assert.equal(outcome, `Bad Request: bad webhook: IP address ${proxy.host} is reserved`)
    const bot = await hook(sink.url('/hook'))
    assert.equal(bot.outcome, 'Webhook was set')
    await server.push(bot.botId, { message: { nth: 1 } })
    await sink.atLeast(1)
    await until(() => proxy.targets.length >= sink.connections.total)
    assert.deepEqual(
      proxy.targets,
      Array.from({ length: sink.connections.total }, () => `127.0.0.1:${sink.port}`),
    )

    // The response has come back through the proxy; otherwise the update would be delivered again.
    await until(async () => {
      const { body } = await server.call(bot.token, 'getWebhookInfo')
      return body.result.pending_update_count === 0
    })

    await proxy.stop()
    await server.push(bot.botId, { message: { nth: 2 } })
    const lastError = async (): Promise<unknown> => {
      const { text, body } = await server.call(bot.token, 'getWebhookInfo')
      said.push(text)
      return body.result.last_error_message
    }
    await until(async () => (await lastError()) === 'Proxy: Connection refused')
    const late = await hook(sink.url('/late'))
    assert.equal(late.outcome, 'Bad Request: bad webhook: Proxy: Connection refused')

    await proxy.run()
    await sink.atLeast(2)
    assert.deepEqual(
      sink.deliveries.map(({ update }) => update.message?.['nth']),
      [1, 2],
    )
    said.push((await server.admin('GET', `/v1/bots/${bot.botId}`)).text)
    said.push((await server.admin('GET', `/v1/bots/${bot.botId}/attempts`)).text)
    said.push((await server.admin('GET', '/metrics')).text)
    for (const text of [...said, server.output()]) {
      assert.ok(!text.includes(password))
      assert.ok(!text.includes(Buffer.from(`postbote:${password}`).toString('base64')))
    }
  },
)
