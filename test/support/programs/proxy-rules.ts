/** What no documented reverse proxy may change. The tests of nginx and of Caddy check these rules together with their own. */
import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { until } from '../kit/until.ts'
import { botOf } from '../server/bot-of.ts'
import type { RegisteredBot, Server } from '../server/server.ts'
import { NginxClient } from './nginx-client.ts'
import { botsHost, type TlsProxy } from './tls-proxy.ts'

export interface ProxyPlace {
  readonly server: Server
  readonly proxy: TlsProxy
  readonly client: NginxClient
  /** One bot of each worker. */
  readonly bots: readonly [RegisteredBot, RegisteredBot]
}

export type ProxyRule = (t: TestContext, place: ProxyPlace) => Promise<void>

/** The name of a test, and what it does. */
export type NamedProxyRule = readonly [string, ProxyRule]

export const commonProxyRules: readonly NamedProxyRule[] = [
  ['a long poll ends with a push, and otherwise on time', longPollRule],
  ['a client that has disconnected frees its poll', goneRule],
  ['refusals are paced by the address of the client, which it cannot forge', addressRule],
]

/** Checks all rules at the same time, each with bots of its own, and returns the tokens of all bots. */
export async function checkProxyRules(
  t: TestContext,
  { server, proxy }: Pick<ProxyPlace, 'server' | 'proxy'>,
  rules: readonly NamedProxyRule[],
): Promise<readonly string[]> {
  const tokens: string[] = []
  await Promise.all(
    rules.map(([name, rule], at) =>
      t.test(name, async (each) => {
        const client = new NginxClient(proxy)
        each.after(() => client.close())
        const bots = [
          await server.register(botOf(0, at)),
          await server.register(botOf(1, at)),
        ] as const
        tokens.push(...bots.map(({ token }) => token))
        await rule(each, { server, proxy, client, bots })
      }),
    ),
  )
  return tokens
}

/** Returns whether the server holds a poll of the bot. */
export async function isWaiting(server: Server, { botId }: RegisteredBot): Promise<boolean> {
  return (await server.admin('GET', `/v1/bots/${botId}`)).body.waiting_poll
}

async function longPollRule(_t: TestContext, { server, client, bots }: ProxyPlace): Promise<void> {
  for (const bot of bots) {
    const startMs = performance.now()
    const empty = await client.bot(bot.token, 'getUpdates', { timeout: 1, offset: 1 })
    assert.deepEqual(empty.body, { ok: true, result: [] })
    assert(performance.now() - startMs >= 1_000)
    const waiting = client.bot(bot.token, 'getUpdates', { timeout: 50 })
    await until(() => isWaiting(server, bot))
    const id = await client.update(server.key, bot.botId, { message: { text: 'wake' } })
    const { body } = await waiting
    assert.deepEqual(body.result, [{ update_id: id, message: { text: 'wake' } }])
  }
}

async function goneRule(_t: TestContext, { server, client, bots }: ProxyPlace): Promise<void> {
  for (const bot of bots) {
    const leaving = new AbortController()
    const lost = client.bot(bot.token, 'getUpdates', { timeout: 50 }, leaving.signal)
    await until(() => isWaiting(server, bot))
    leaving.abort()
    await assert.rejects(lost)
    await until(async () => !(await isWaiting(server, bot)))
  }
}

async function addressRule(t: TestContext, { proxy, bots }: ProxyPlace): Promise<void> {
  const [near, far] = ['127.0.7.1', '127.0.7.2'].map(
    (address) => new NginxClient(proxy, { address }),
  )
  assert(near !== undefined && far !== undefined)
  t.after(() => [near, far].forEach((client) => client.close()))
  const order: string[] = []
  const refused = async (name: string, client: NginxClient, forged?: string): Promise<void> => {
    const [bot] = bots
    const answer = await client.ask(botsHost, {
      path: `/bot${bot.token.slice(0, -1)}~/getMe`,
      headers: forged === undefined ? {} : { 'x-real-ip': forged },
    })
    assert.equal(answer.status, 401)
    assert.equal(answer.body.error_code, 401)
    order.push(name)
  }
  await refused('first', near)
  const held = [refused('again', near), refused('forged', near, '198.51.100.7')]
  // Let these two arrive before the other client calls.
  await near.bot(bots[0].token, 'getMe')
  await refused('other', far)
  await Promise.all(held)
  assert.deepEqual(order.slice(0, 2), ['first', 'other'])
}
