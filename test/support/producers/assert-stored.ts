import assert from 'node:assert/strict'
import type { DriverReport } from '../../../clients/conformance/job.ts'
import type { RegisteredBot, Server } from '../server/server.ts'
import { assertIdsGoOn } from './assert-ids-go-on.ts'
import { readAll } from './read-all.ts'

/** Checks that all pushes of a job, as many for each bot, are stored under the ids of their results, once and in order. */
export async function assertStored(
  server: Server,
  bots: readonly RegisteredBot[],
  { results, retries, errorText }: DriverReport,
  count: number,
): Promise<void> {
  assert.equal(errorText, '')
  assert.equal(results.length, count)
  const ids = new Map(results.map(({ n, updateId }) => [n, updateId]))
  assert.equal(ids.size, count)
  for (const [nth, bot] of bots.entries()) {
    const stored = await readAll(server, bot)
    assertIdsGoOn(stored.map(({ id }) => id))
    const numbers = stored.map(({ id, message }) => {
      const n = message['message_id'] ?? -1
      assert.equal(ids.get(n), id)
      return n
    })
    // An update that was refused for a moment may have been overtaken by others that were under way with it.
    const isOvertaken = retries.some(({ botId }) => botId === bot.botId)
    const inOrder = isOvertaken ? numbers.toSorted((a, b) => a - b) : numbers
    const expected = Array.from({ length: count / bots.length }, (_, at) => nth + at * bots.length)
    assert.deepEqual(inOrder, expected)
  }
}
