/**
 * Decides which call goes to the upstream server now.
 *
 * A bot whose calls are slow or hang must not occupy all connections of a worker to that server. Each bot may therefore
 * have a limited number of calls open; its further calls wait for their turn until they are canceled.
 */

interface BotCalls {
  open: number
  readonly waiting: Set<() => void>
}

export class UpstreamTurns {
  /** Bots that have a call open. */
  readonly #bots = new Map<string, BotCalls>()
  readonly #openPerBotMax: number

  constructor(openPerBotMax: number) {
    this.#openPerBotMax = openPerBotMax
  }

  /** Starts a call, now or later. The returned function ends the call's turn or its wait and may be called repeatedly. */
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
