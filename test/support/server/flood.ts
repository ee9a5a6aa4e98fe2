/**
 * Makes one kind of call again and again, some at once, from a thread of its own: what it reads does not delay those whose calls
 * the test measures.
 */
import { Agent, request } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { isMainThread, parentPort, Worker } from 'node:worker_threads'

export interface FloodCall {
  readonly method: string
  readonly url: string
  readonly secret?: string
  readonly body?: object | string | undefined
  /** Whether the response is given up after `lookMs`, because it goes on. */
  readonly lasts?: boolean | undefined
}

interface Order {
  /** They are made one after the other, and again from the first. */
  readonly calls: readonly FloodCall[]
  readonly atOnce: number
}

/** A response that lasts is given up after this time. */
const lookMs = 50

export class Flood {
  readonly #thread = new Worker(new URL(import.meta.url))

  /** @returns what ends these calls, and returns the statuses of their answers: 0 of those that were given up before */
  begin(order: Order): () => Promise<ReadonlySet<number>> {
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, and not a window
    this.#thread.postMessage(order)
    return () =>
      new Promise((resolve) => {
        this.#thread.once('message', resolve)
        // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, and not a window
        this.#thread.postMessage('end')
      })
  }

  async close(): Promise<void> {
    await this.#thread.terminate()
  }
}

/** Sends a request, reads its response without keeping it, and returns its status; 0 if it was given up before. */
export function statusOf(
  { method, url, secret, body, lasts }: FloodCall,
  agent: Agent,
): Promise<number> {
  return new Promise((resolve) => {
    const isText = typeof body === 'string'
    const headers = {
      ...(secret === undefined ? {} : { authorization: `Bearer ${secret}` }),
      ...(body === undefined || isText ? {} : { 'content-type': 'application/json' }),
    }
    const outgoing = request(url, { method, headers, agent }, (response) => {
      if (lasts === true) setTimeout(() => outgoing.destroy(), lookMs)
      response.on('error', () => undefined).resume()
      response.on('close', () => resolve(response.statusCode ?? 0))
    })
    outgoing.on('error', () => resolve(0))
    outgoing.end(isText || body === undefined ? body : JSON.stringify(body))
  })
}

async function flood({ calls, atOnce }: Order, end: AbortSignal): Promise<ReadonlySet<number>> {
  const agent = new Agent({ keepAlive: true, maxSockets: atOnce })
  const statuses = new Set<number>()
  let nth = 0
  const callers = Array.from({ length: atOnce }, async () => {
    while (!end.aborted) {
      const call = calls[nth++ % calls.length]
      if (call !== undefined) statuses.add(await statusOf(call, agent))
    }
  })
  await new Promise((resolve) => end.addEventListener('abort', resolve))
  // Those that wait for a budget are given up.
  await Promise.race([Promise.all(callers), sleep(lookMs)])
  agent.destroy()
  await Promise.all(callers)
  return statuses
}

if (!isMainThread) {
  let end = new AbortController()
  parentPort?.on('message', (message: Order | 'end') => {
    if (message === 'end') {
      end.abort()
      return
    }
    end = new AbortController()
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- as above
    void flood(message, end.signal).then((statuses) => parentPort?.postMessage(statuses))
  })
}
