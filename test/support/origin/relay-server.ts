/** A server whose bots have tokens of a fake origin and are relayed from there. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { freshBotOf } from '../server/bot-of.ts'
import {
  type EndingTest,
  type RegisteredBot,
  type Server,
  type ServerOptions,
  startServer,
} from '../server/server.ts'
import type { Origin } from './origin.ts'

/** The flags with which a server relays from an origin. */
export function relayFlags({ url }: Origin): readonly string[] {
  return ['--local', '--foreign-tokens', `--relay-from=${url}`, `--upstream=${url}`]
}

export function startRelayServer(
  t: EndingTest,
  origin: Origin,
  { flags = [], ...options }: ServerOptions = {},
): Promise<Server> {
  return startServer(t, { workers: 2, ...options, flags: [...relayFlags(origin), ...flags] })
}

/** Returns a token of this bot in the form that the origin's have. */
export function foreignToken(botId: number): string {
  return `${botId}:AA${randomBytes(33).toString('base64url').slice(0, 33)}`
}

/** Registers a bot at both, and relays it. */
export async function relayedBot(
  origin: Origin,
  server: Server,
  botId = freshBotOf(0),
): Promise<RegisteredBot> {
  const token = foreignToken(botId)
  await origin.control.register([{ botId, token }])
  const registration = { first_name: 'A', username: `bot_${botId}`, token }
  const registered = await server.admin('POST', '/v1/bots', registration)
  assert.equal(registered.status, 200, registered.text)
  await setRelay(server, { botId, token, origin })
  return { botId, token }
}

export async function setRelay(
  server: Server,
  { botId, token, origin }: RegisteredBot & { readonly origin: Origin },
): Promise<void> {
  const relay = { from: origin.url, token }
  const { status, text } = await server.admin('PUT', `/v1/bots/${botId}/relay`, relay)
  assert.equal(status, 200, text)
}
