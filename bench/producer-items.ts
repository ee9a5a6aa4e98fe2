/** The question to producers in JavaScript, and the items that they push: objects, as a platform has them, and not bytes. */
import { sampleUpdate, seededRandom } from './sample-updates.ts'

export interface ProducerQuestion {
  readonly port: number
  readonly adminKey: string
  /** The number of connections, each with a stream. */
  readonly streams: number
  readonly firstBotId: number
  readonly bots: number
  readonly durationMs: number
}

export interface ProducerItem {
  readonly botId: number
  readonly update: { readonly message: object }
}

const preparedItems = 20_000

/** The same for every producer. */
export class ProducerItems {
  readonly #items: readonly ProducerItem[]

  constructor({ firstBotId, bots }: Pick<ProducerQuestion, 'firstBotId' | 'bots'>) {
    const random = seededRandom(5)
    this.#items = Array.from({ length: preparedItems }, (_, index) => ({
      botId: firstBotId + (index % bots),
      update: JSON.parse(sampleUpdate(random, index % 5_000)),
    }))
  }

  /** Yields the items in a circle, beginning at one of them. */
  *until(endMs: number, first: number): Generator<ProducerItem, void, undefined> {
    for (let next = first; performance.now() < endMs; next++) {
      const item = this.#items[next % preparedItems]
      if (item !== undefined) yield item
    }
  }

  /** Where the nth of `of` producers begins. */
  firstOf(nth: number, of: number): number {
    return Math.floor((nth * preparedItems) / of)
  }
}
