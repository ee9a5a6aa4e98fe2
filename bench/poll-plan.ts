/**
 * Requests of getUpdates with timeout 0, prepared for `http-load`.
 *
 * Every poll has another raw offset than the previous one of its bot, since repeated ones are delayed (protocol.md §5.3). All
 * offsets stand for the same position, so that nothing is confirmed and every response is the same.
 */
import { ShardMap } from '../src/process/shard-map.ts'
import type { HttpConnection } from './http-sample.ts'
import { smallBody } from './http-contestants.ts'
import { sampleUpdate, seededRandom, updateBytes } from './sample-updates.ts'
import type { RegisteredBot, ServerUnderTest } from './server-under-test.ts'

export interface PollShape {
  /** How many updates each bot has pending. */
  readonly updates: number
  readonly updateBytes?: number
  /** Header lines of each request. */
  readonly headers?: readonly string[]
  readonly isOneShot?: boolean
}

/** The polls of one bot, and the length of the response. */
export interface PolledBot {
  readonly requests: readonly string[]
  readonly bodyBytes: number
}

const updatesPerAnswer = 100
const shards = 8

/** Pushes the updates that the bots will get. */
export async function polledBots(
  server: ServerUnderTest,
  bots: readonly RegisteredBot[],
  shape: PollShape,
): Promise<PolledBot[]> {
  const { updates, updateBytes: bytes = updateBytes } = shape
  const random = seededRandom(2)
  const polled: PolledBot[] = []
  for (const bot of bots) {
    let pairs = ''
    for (let index = 0; index < updates; index++) {
      pairs += `{"bot_id":${bot.botId}}\n${sampleUpdate(random, index, bytes)}\n`
    }
    const ids = updates === 0 ? [] : await server.pushPairs(pairs)
    // An offset far below the oldest update means "from the oldest", as do 0 and the oldest id itself.
    const offsets = updates === 0 ? [0, 1, 2, 3] : [0, ids[0] ?? 0, 1, (ids[0] ?? 0) - 1]
    polled.push({
      requests: offsets.map((offset) => requestOf(bot, offset, shape)),
      bodyBytes: bodyBytesOf(ids, bytes),
    })
  }
  return polled
}

/** One bot per connection, as in practice. */
export function directPlan(
  server: ServerUnderTest,
  polled: readonly PolledBot[],
  { isOneShot = false }: PollShape,
): HttpConnection[] {
  return polled.map(({ requests, bodyBytes }) => ({
    port: server.botPort,
    requests,
    bodyBytesMin: bodyBytes,
    bodyBytesMax: bodyBytes,
    isOneShot,
  }))
}

/** Two bots per connection, polled in turn: one of each half. */
export function mixedPlan(
  server: ServerUnderTest,
  halves: readonly [readonly PolledBot[], readonly PolledBot[]],
): HttpConnection[] {
  return halves[0].map((one, index) => {
    const other = halves[1][index] ?? one
    // Each connection belongs to the worker of its first bot.
    const [first, second] = index % 2 === 0 ? [one, other] : [other, one]
    return {
      port: server.botPort,
      requests: first.requests.flatMap((request, place) => [
        request,
        second.requests[place] ?? request,
      ]),
      // Ids of one bot may be longer than those of the other.
      bodyBytesMin: Math.min(first.bodyBytes, second.bodyBytes),
      bodyBytesMax: Math.max(first.bodyBytes, second.bodyBytes),
    }
  })
}

/** Groups bots by the worker that owns them. */
export function botsByWorker<Bot extends { readonly botId: number }>(
  bots: readonly Bot[],
  workers: number,
): Bot[][] {
  const map = new ShardMap({ shards, workers })
  const byWorker = Array.from({ length: workers }, (): Bot[] => [])
  for (const bot of bots) byWorker[map.workerOfBot(bot.botId)]?.push(bot)
  return byWorker
}

function bodyBytesOf(ids: readonly number[], textBytes: number): number {
  const listed = ids.map((id) => `{"update_id":${id},`.length + textBytes - 1)
  const commas = Math.max(ids.length - 1, 0)
  return smallBody.length + listed.reduce((sum, bytes) => sum + bytes, 0) + commas
}

function requestOf(bot: RegisteredBot, offset: number, shape: PollShape): string {
  const { headers = [], isOneShot = false } = shape
  const query = `offset=${offset}&limit=${updatesPerAnswer}&timeout=0`
  const lines = [
    `GET /bot${bot.token}/getUpdates?${query} HTTP/1.1`,
    'Host: localhost',
    'Accept: */*',
    `Connection: ${isOneShot ? 'close' : 'keep-alive'}`,
    ...headers,
  ]
  return `${lines.join('\r\n')}\r\n\r\n`
}
