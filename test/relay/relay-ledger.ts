/**
 * What the reader of one relayed bot has received, against what the origin has made. In each chat the origin counts from 0,
 * and the text of a message is `CHAT NUMBER`.
 *
 *   lost      a number of a chat never came
 *   doubled   a number came under two update ids
 *   order     in its chat a number came after a later one
 *
 * The same update may come again: a bot that was interrupted has not confirmed it.
 */
export type RelayRule = 'lost' | 'doubled' | 'order'

export class RelayLedger {
  readonly violations: string[] = []
  readonly counts = { received: 0, receivedAgain: 0 }
  readonly #botId: number
  /** By chat: the update ids by number. */
  readonly #ids = new Map<number, number[]>()

  constructor(botId: number) {
    this.#botId = botId
  }

  receive(updateId: number, text: string): void {
    const [chat = 0, number = 0] = text.split(' ').map(Number)
    const ids = this.#ids.get(chat) ?? []
    this.#ids.set(chat, ids)
    const before = ids[number]
    if (before === updateId) {
      this.counts.receivedAgain++
      return
    }
    if (before !== undefined) {
      this.#break('doubled', `${text} came as ${before} and ${updateId}`)
      return
    }
    this.counts.received++
    // A hole is either filled later, which breaks the order, or never.
    if (number < ids.length) this.#break('order', `${text} came after ${chat} ${ids.length - 1}`)
    if (updateId <= (ids.at(-1) ?? 0))
      this.#break('order', `${text} came with a lower id, ${updateId}`)
    ids[number] = updateId
  }

  hasAll(driven: Readonly<Record<number, number>>): boolean {
    return this.#missing(driven).length === 0
  }

  /** Everything that was made must have come by now. */
  settle(driven: Readonly<Record<number, number>>): void {
    for (const text of this.#missing(driven)) this.#break('lost', `${text} has not come`)
  }

  #missing(driven: Readonly<Record<number, number>>): readonly string[] {
    return Object.entries(driven).flatMap(([chat, count]) => {
      const ids = this.#ids.get(Number(chat)) ?? []
      return Array.from({ length: count }, (_, number) => number)
        .filter((number) => ids[number] === undefined)
        .map((number) => `${chat} ${number}`)
    })
  }

  #break(rule: RelayRule, text: string): void {
    this.violations.push(`${rule}: bot ${this.#botId}: ${text}`)
  }
}
