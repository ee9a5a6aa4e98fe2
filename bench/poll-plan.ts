/**
 * Requests of getUpdates with timeout 0, prepared for `http-load`.
 *
 * Every poll has another raw offset than the one before of its bot, since repeated ones are held back (protocol.md §5.3), but
 * all of them stand for the same place, so that nothing is confirmed and every answer is the same.
 */
import { ShardMap } from '../src/cluster/shard-map.ts'
import type { HttpConnection } from './http-sample.ts'
import { smallBody } from './http-contestants.ts'
import { sampleUpdate, seededRandom, updateBytes } from './sample-updates.ts'
import type { RegisteredBot, ServerUnderTest } from './server-under-test.ts'

export interface PollShape {
  /** That each bot has pending. */
  readonly updates: number
  readonly updateBytes?: number
  /** Lines of each request's head. */
  readonly headers?: readonly string[]
  readonly isOneShot?: boolean
}

/** What one bot asks for, and how long the answer is. */
export interface PolledBot {
  readonly requests: readonly string[]
  readonly bodyBytes: number
}

const updatesPerAnswer = 100
const shards = 8

/** Pushes what the bots are to be given. */
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
    // Far below the oldest means from the oldest, as do 0 and the oldest itself.
    const offsets = updates === 0 ? [0, 1, 2, 3] : [0, ids[0] ?? 0, 1, (ids[0] ?? 0) - 1]
    polled.push({
      requests: offsets.map((offset) => requestOf(bot, offset, shape)),
      bodyBytes: bodyBytesOf(ids, bytes),
    })
  }
  return polled
}

/** One bot a connection, as bots are. */
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

/** Two bots a connection, asked in turn: all such pairs, of one half and the other. */
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

/** By the worker that owns them. */
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
