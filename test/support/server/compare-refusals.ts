/**
 * Compares how long the refusals of guesses take at bots that exist and at such that do not, while another bot makes calls.
 * `scripts/compare-refusals` has 100,000 made.
 */
import assert from 'node:assert/strict'
import { Agent, get } from 'node:http'
import { text as textOf } from 'node:stream/consumers'
import type { TestContext } from 'node:test'
import { setTimeout as sleepMs } from 'node:timers/promises'
import { freshBotOf } from './bot-of.ts'
import { freshAddress } from './fresh-address.ts'
import type { Server } from './server.ts'

/** A guess at the secret of a bot. */
export interface Guess {
  /** At the public listener. */
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
}

export interface ComparedRefusals {
  readonly server: Server
  /** Makes a bot, of which some guesses are made. */
  readonly register: (botId: number) => Promise<unknown>
  readonly guess: (botId: number) => Guess
}

/** Fails if the times differ by more than chance. Each guess is from an address of its own, which has slots left. */
export async function compareRefusals(
  t: TestContext,
  { server, register, guess }: ComparedRefusals,
): Promise<void> {
  const known = Array.from({ length: 20 }, () => freshBotOf(0))
  for (const botId of known) await register(botId)
  const unknown = known.map(() => freshBotOf(0))
  const isScript = process.env['GUESSES'] !== undefined
  const count = Number(process.env['GUESSES'] ?? 1_000)
  const connections = isScript ? 100 : 32
  const agent = new Agent({ keepAlive: true, maxSockets: connections })
  t.after(() => agent.destroy())
  const times: [number[], number[]] = [[], []]
  const guessSome = async (share: number): Promise<void> => {
    for (let nth = 0; nth < share; nth++) {
      // Drawn, so that neither kind has a place in the order.
      const kind = Math.random() < 0.5 ? 0 : 1
      const ids = kind === 0 ? known : unknown
      const made = guess(ids[Math.floor(Math.random() * ids.length)] ?? 0)
      const startMs = performance.now()
      const text = await guessed(server, made, { address: freshAddress(), agent })
      times[kind].push(performance.now() - startMs)
      assert.match(text, /^401/)
    }
  }
  const { token } = await server.register(freshBotOf(0))
  const quiet = await callsUntil(server, token, sleepMs(isScript ? 3_000 : 100))
  const guesses = Array.from({ length: connections }, () =>
    guessSome(Math.ceil(count / connections)),
  )
  const startMs = performance.now()
  const busy = await callsUntil(server, token, Promise.all(guesses))
  t.diagnostic(`getMe of another bot: p99 ${quiet} ms without guesses, ${busy} ms with them`)
  if (isScript) {
    const everyMs = ((performance.now() - startMs) * connections) / count
    const honest = await callsUntil(server, token, honestCalls(server, agent, everyMs))
    t.diagnostic(`and ${honest} ms with as many calls with a right token`)
  }
  const z = rankDifference(...times)
  const medians = times.map((each) => each.toSorted((a, b) => a - b)[each.length >> 1]?.toFixed(3))
  t.diagnostic(`${count} guesses: medians ${medians.join(' and ')} ms, z = ${z.toFixed(2)}`)
  // By chance, one run in 16,000 is beyond this.
  assert(Math.abs(z) < 4, `z = ${z}`)
}

/** Chosen: enough calls for a percentile. */
const honestMs = 10_000

/** Makes calls as often as the guesses were made, on as many connections. */
async function honestCalls(server: Server, agent: Agent, everyMs: number): Promise<void> {
  const tokens: string[] = []
  for (let nth = 0; nth < 20; nth++) tokens.push((await server.register(freshBotOf(0))).token)
  const endMs = performance.now() + honestMs
  const callOften = async (nth: number): Promise<void> => {
    const path = `/bot${tokens[nth % tokens.length]}/getMe`
    while (performance.now() < endMs) {
      const nextMs = performance.now() + everyMs
      assert.match(await guessed(server, { path }, { address: freshAddress(), agent }), /^200/)
      await sleepMs(Math.max(0, nextMs - performance.now()))
    }
  }
  await Promise.all(Array.from({ length: agent.maxSockets }, (_, nth) => callOften(nth)))
}

/** Returns the status and the text of the response to a guess. */
export function guessed(
  server: Server,
  { path, headers }: Guess,
  from: { readonly address: string; readonly agent?: Agent },
): Promise<string> {
  return new Promise((resolve, reject) => {
    const options = {
      headers: { ...headers, 'x-real-ip': from.address },
      agent: from.agent ?? false,
    }
    get(server.botUrl + path, options, (response) => {
      textOf(response).then((body) => resolve(`${response.statusCode} ${body}`), reject)
    }).on('error', reject)
  })
}

/** Calls getMe every 5 ms until the work has ended, and returns the 99th percentile of its time in ms. */
async function callsUntil(server: Server, token: string, work: Promise<unknown>): Promise<string> {
  const call = { isOver: false }
  const end = work.finally(() => (call.isOver = true))
  const times: number[] = []
  while (!call.isOver) {
    const startMs = performance.now()
    assert.equal((await server.call(token, 'getMe')).status, 200)
    times.push(performance.now() - startMs)
    await sleepMs(5)
  }
  await end
  return times.toSorted((a, b) => a - b)[Math.floor(times.length * 0.99)]?.toFixed(1) ?? 'none'
}

/** The test of Mann and Whitney: how many standard deviations the ranks of the two lie apart. */
function rankDifference(first: readonly number[], second: readonly number[]): number {
  const all = [...first.map((ms) => [ms, 1] as const), ...second.map((ms) => [ms, 0] as const)]
  const ranked = all.toSorted(([a], [b]) => a - b)
  let sum = 0
  for (const [rank, [, isFirst]] of ranked.entries()) sum += isFirst * (rank + 1)
  const [n, m] = [first.length, second.length]
  const mean = (n * (n + m + 1)) / 2
  return (sum - mean) / Math.sqrt((n * m * (n + m + 1)) / 12)
}
