/**
 * What is known about every push to one bot, and the rules that it must keep:
 *
 *   accepted   received exactly once, under the id that the response named
 *   refused    never received
 *   unknown    received once or never
 *
 * Ids of first receptions rise. A bot with a webhook may receive an update again, under the same id.
 *
 * A push is a number from 0 on, and a long run has many of them: each costs two numbers of memory.
 */
export type Outcome = 'open' | 'accepted' | 'refused' | 'unknown'
export type Rule = 'lost' | 'stored twice' | 'refused but stored' | 'order' | 'wrong id'

export interface Violation {
  readonly rule: Rule
  readonly text: string
}

const openId = 0
const refusedId = -1
const unknownId = -2

export class BotLedger {
  readonly botId: number
  readonly violations: Violation[] = []
  readonly counts = { accepted: 0, refused: 0, unknown: 0, received: 0, receivedAgain: 0 }
  /** By push: the id of an accepted one, or one of the numbers above. */
  readonly #ids: number[] = []
  /** By push: the id under which it was received, or 0. */
  readonly #received: number[] = []
  #lastId = 0

  constructor(botId: number) {
    this.botId = botId
  }

  /** Returns the number of a new push. */
  begin(): number {
    this.#received.push(openId)
    return this.#ids.push(openId) - 1
  }

  /** The push has an id. A push that is repeated with its key has the same one every time. */
  accept(number: number, id: number): void {
    const before = this.#ids[number] ?? openId
    if (before > 0) {
      if (before !== id)
        this.#break('stored twice', `${number} was accepted as ${before} and ${id}`)
      return
    }
    this.#ids[number] = id
    this.counts.accepted++
    const received = this.#received[number] ?? openId
    if (received !== openId && received !== id)
      this.#break('wrong id', `${number} was accepted as ${id} and received as ${received}`)
  }

  refuse(number: number): void {
    this.#ids[number] = refusedId
    this.counts.refused++
    const received = this.#received[number] ?? openId
    if (received !== openId)
      this.#break('refused but stored', `${number} was refused and received as ${received}`)
  }

  leaveUnknown(number: number): void {
    this.#ids[number] = unknownId
    this.counts.unknown++
  }

  /** Takes an update that the bot has received. */
  receive(id: number, number: number): void {
    const before = this.#received[number] ?? openId
    if (before === id) {
      this.counts.receivedAgain++
      return
    }
    if (before !== openId) {
      this.#break('stored twice', `${number} was received as ${before} and ${id}`)
      return
    }
    this.#received[number] = id
    this.counts.received++
    if (id <= this.#lastId) this.#break('order', `${id} was received after ${this.#lastId}`)
    this.#lastId = Math.max(this.#lastId, id)
    const known = this.#ids[number] ?? openId
    if (known === refusedId)
      this.#break('refused but stored', `${number} was refused and received as ${id}`)
    if (known > 0 && known !== id)
      this.#break('wrong id', `${number} was accepted as ${known} and received as ${id}`)
  }

  /** The id of one push must be higher than that of another one, which was accepted before it began. */
  expectRising(before: number, id: number): void {
    if (id <= before) this.#break('order', `a push got ${id} after one that got ${before}`)
  }

  hasReceived(number: number): boolean {
    return (this.#received[number] ?? openId) !== openId
  }

  /** All accepted pushes must have been received by now. */
  settle(): void {
    for (const [number, id] of this.#ids.entries()) {
      if (id > 0 && !this.hasReceived(number))
        this.#break('lost', `${number} was accepted as ${id} and not received`)
    }
  }

  #break(rule: Rule, text: string): void {
    this.violations.push({ rule, text: `bot ${this.botId}: ${text}` })
  }
}
