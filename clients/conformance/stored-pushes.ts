/** What a fake server has stored: each push by its bot, in order, with its key; and how often each was attempted. */
import type { Action, Scenario } from './scenario.ts'

/** A push that has arrived, with what is to be done with it. */
export interface ArrivedPush {
  readonly bot: number
  readonly n: number
  readonly key: string | undefined
  readonly action: Action
  /** Whether it came before the Retry-After of its last attempt was over. */
  readonly isEarly: boolean
}

/** An update in a queue of the fake server. */
export interface StoredPush {
  readonly n: number
  readonly id: number
  readonly key: string | undefined
}

/** A recurring fault is due about this many times in a run. */
const turnsInRun = 20

/** The queues of a fake server. */
export class StoredPushes {
  readonly #scenario: Scenario
  readonly #bots: readonly number[]
  readonly #period: number
  readonly #queues = new Map<number, StoredPush[]>()
  readonly #idOfKey = new Map<string, number>()
  /** The key and the bytes of the first attempt of each push. */
  readonly #firsts = new Map<number, string>()
  readonly #attempts = new Map<number, number>()
  readonly #notBeforeMs = new Map<number, number>()
  #unanswered = 0
  /** The largest number of pairs of all streams together that had no result. */
  unansweredMax = 0
  /** What a client must not do, in words. */
  readonly complaints: string[] = []

  /** Opens empty queues. */
  constructor(options: {
    readonly scenario: Scenario
    readonly bots: readonly number[]
    readonly count: number
  }) {
    const { scenario, bots, count } = options
    this.#scenario = scenario
    this.#bots = bots
    // A multiple of the number of bots, so that turns come for the first bot, too.
    this.#period = Math.max(1, Math.floor(count / turnsInRun / bots.length)) * bots.length
  }

  /** Returns the stored updates of a bot, in the order of their ids. */
  of(bot: number): readonly StoredPush[] {
    return this.#queues.get(bot) ?? []
  }

  /** The largest number of attempts of one push. */
  get attemptsMax(): number {
    return [...this.#attempts.values()].reduce((max, each) => Math.max(max, each), 0)
  }

  /** Counts pairs that have arrived, or, below 0, that have their result or lost their stream. */
  countUnanswered(pairs: number): void {
    this.#unanswered += pairs
    this.unansweredMax = Math.max(this.unansweredMax, this.#unanswered)
  }

  /** Forgets the attempts, before the same job runs again. */
  forgetAttempts(): void {
    this.#attempts.clear()
  }

  /** Reads a push; undefined if it is none that a job asks for. */
  read(bot: number, text: string, key: string | undefined): ArrivedPush | undefined {
    const n: unknown = parsedOrUndefined(text)?.message?.message_id
    if (typeof n !== 'number' || this.#bots[n % this.#bots.length] !== bot) return undefined
    const attempt = (this.#attempts.get(n) ?? 0) + 1
    this.#attempts.set(n, attempt)
    const sent = `${key} ${text}`
    const first = this.#firsts.get(n) ?? sent
    this.#firsts.set(n, first)
    if (sent !== first) this.complaints.push(`push ${n} came again with another key or other bytes`)
    const isFirstBot = bot === this.#bots[0]
    // The first bot has the pushes 0, 4, 8 ..., so the last turn of a run comes well before its end.
    const isTurn = n % this.#period === 0 && n > 0
    const action = this.#scenario.action({ n, attempt, isFirstBot, isTurn })
    const isEarly = performance.now() < (this.#notBeforeMs.get(n) ?? 0)
    if (action.kind === 'refuse' && action.retryAfterS !== undefined) {
      this.#notBeforeMs.set(n, performance.now() + action.retryAfterS * 1_000)
    }
    return { bot, n, key, action, isEarly }
  }

  /** Stores a push unless its key was stored before, and returns its result. */
  take({ bot, n, key }: ArrivedPush): string {
    const known = key === undefined ? undefined : this.#idOfKey.get(`${bot} ${key}`)
    if (known !== undefined) return `{"update_id":${known},"duplicate":true}`
    const queue = this.#queues.get(bot) ?? []
    this.#queues.set(bot, queue)
    const id = queue.length + 1
    queue.push({ n, id, key })
    if (key !== undefined) this.#idOfKey.set(`${bot} ${key}`, id)
    return `{"update_id":${id}}`
  }
}

function parsedOrUndefined(
  text: string,
): { readonly message?: { message_id?: unknown } } | undefined {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
