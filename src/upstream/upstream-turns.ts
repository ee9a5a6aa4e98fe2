/**
 * Whose call goes to the upstream server now. A bot whose calls take long or hang must not have all of a worker's
 * connections to that server, so that the calls of others wait for it: it gets so many at a time, and its further
 * calls wait for their turn, for as long as whoever makes them does.
 */

interface BotCalls {
  open: number
  readonly waiting: Set<() => void>
}

export class UpstreamTurns {
  /** Of bots that have a call open. */
  readonly #bots = new Map<string, BotCalls>()
  readonly #openPerBotMax: number

  constructor(openPerBotMax: number) {
    this.#openPerBotMax = openPerBotMax
  }

  /** Starts a call, now or later. What it gives ends the call's turn or its wait, and may be called again. */
  take(bot: string, start: () => void): () => void {
    const calls = this.#bots.get(bot) ?? { open: 0, waiting: new Set() }
    this.#bots.set(bot, calls)
    let isOver = false
    if (calls.open < this.#openPerBotMax) {
      calls.open += 1
      start()
    } else {
      calls.waiting.add(start)
    }
    return () => {
      if (isOver) return
      isOver = true
      if (!calls.waiting.delete(start)) this.#leave(bot, calls)
    }
  }

  #leave(bot: string, calls: BotCalls): void {
    const [next] = calls.waiting
    if (next === undefined) {
      calls.open -= 1
      if (calls.open === 0) this.#bots.delete(bot)
    } else {
      calls.waiting.delete(next)
      next()
    }
  }
}
