/** What an attack on a server must leave to other bots, and a bot with much to search through. */
import assert from 'node:assert/strict'
import type { RegisteredBot, Server } from './server.ts'

const kept = 30_000
/** What others may wait with those who do their worst, as a multiple of what they wait without. */
export const ratioMax = 3
/** A time below this is that of one usual turn of a busy machine, with and without them. */
export const usualMs = 15
/** What seems to delay others is made again, up to this many times in all: a machine does other things as well. */
export const tries = 3

/** Pushes many updates. */
export async function pushMany(server: Server, { botId }: RegisteredBot): Promise<void> {
  const pairs = Array.from(
    { length: kept },
    (_, nth) => `{"bot_id":${botId}}\n{"message":{"message_id":${nth}}}\n`,
  )
  const { status, text } = await server.admin('POST', '/v1/updates', pairs.join(''))
  assert.equal(status, 200, text)
}

/** Has a bot confirm many updates, which are kept. */
export async function keepMany(server: Server, bot: RegisteredBot): Promise<void> {
  await pushMany(server, bot)
  for (let offset = 0; ; ) {
    const { body } = await server.call(bot.token, 'getUpdates', { offset, limit: 100 })
    const last = body.result.at(-1)
    if (last === undefined) return
    offset = last.update_id + 1
  }
}

export function p95Of(times: readonly number[]): number {
  return times.toSorted((a, b) => a - b)[Math.floor(0.95 * times.length)] ?? 0
}
