/** The routes of webhooks without a server. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import Fastify from 'fastify'
import { addWebhookRoutes } from '../../../../src/features/bots/webhook-routes.ts'
import { BotsLife } from '../../../support/queue/bots-life.ts'

test('the token that a bot has given for replies stays for its endpoint only, whoever sets the webhook', async () => {
  const bots = await BotsLife.open()
  const queue = await bots.queueOf(await bots.register(100))
  const app = Fastify()
  addWebhookRoutes(app, { bots: bots.registry, webhookConnectionsMax: 100 })
  const url = 'https://bot.example/hook'
  const set = async (fields: object): Promise<string | undefined> => {
    await bots.clock.advance(1_000)
    const payload = { url, ...fields }
    const { statusCode } = await app.inject({ method: 'PUT', url: '/v1/bots/100/webhook', payload })
    assert.equal(statusCode, 200)
    return queue.settings.webhook?.sealedToken
  }
  const byBot = { url, maxConnections: 40, sealedToken: 'sealed' }
  for (const [fields, sealedToken] of [
    [{}, 'sealed'],
    [{ secret_token: 'other', max_connections: 7 }, 'sealed'],
    [{ url: 'https://other.example/hook' }, undefined],
    [{ url: 'https://bot.example/other' }, undefined],
    [{ ip_address: '192.0.2.9' }, undefined],
  ] as const) {
    await bots.clock.advance(1_000)
    await queue.webhook.set({ webhook: byBot, allowedTypes: 'default', dropsPending: false })
    assert.equal(await set(fields), sealedToken, JSON.stringify(fields))
    // Not even afterwards.
    assert.equal(await set({}), sealedToken)
  }
})
