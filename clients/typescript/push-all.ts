/**
 * Pushes all items of an iterable over one stream and yields the results in order.
 *
 * Items are read while the stream has room and while the results that have not been taken are no more than the stream
 * may have in progress. Both a slow server and a slow consumer therefore slow the source down.
 */
import { PostboteClientError } from './postbote-client-error.ts'
import type { PushStream } from './push-stream.ts'
import type { PushItem, PushResult, UpdatePayloads } from './pushed-update.ts'

/** An item with its result or its error. */
export type PushAllResult<Item> =
  | { readonly item: Item; readonly result: PushResult; readonly error?: never }
  | { readonly item: Item; readonly result?: never; readonly error: PostboteClientError }

/**
 * Implements `PostboteClient.pushAll`.
 *
 * @param items - The source, which may be endless.
 * @param open - Opens the stream when the first result is requested.
 * @param resultsMax - How many results may wait to be taken.
 * @throws PostboteClientError: CLOSED, from `open`. Rethrows an error of the source after the results of all items before it.
 */
export async function* pushAll<Payloads extends UpdatePayloads, Item extends PushItem<Payloads>>(
  items: AsyncIterable<Item> | Iterable<Item>,
  open: () => PushStream<Payloads>,
  resultsMax: number,
): AsyncGenerator<PushAllResult<Item>, void, undefined> {
  const stream = open()
  const pump = new Pump({ items, stream, resultsMax })
  try {
    for (;;) {
      const next = await pump.next()
      if (next === undefined) break
      yield await next.result
    }
  } finally {
    pump.stop()
    await stream.close()
  }
  pump.throwSourceError()
}

interface PumpOptions<Payloads extends UpdatePayloads, Item> {
  readonly items: AsyncIterable<Item> | Iterable<Item>
  readonly stream: PushStream<Payloads>
  readonly resultsMax: number
}

/** Reads the source and pushes the items, independently of the consumer, which takes the results in order. */
class Pump<Payloads extends UpdatePayloads, Item extends PushItem<Payloads>> {
  readonly #options: PumpOptions<Payloads, Item>
  #results: Promise<PushAllResult<Item>>[] = []
  /** How many of them, from the front, have been taken. */
  #takenCount = 0
  #isStopped = false
  #isDone = false
  #failure: { readonly error: unknown } | undefined
  #onResult: (() => void) | undefined
  #onRoom: (() => void) | undefined

  constructor(options: PumpOptions<Payloads, Item>) {
    this.#options = options
    void this.#run()
  }

  /** Returns the promise of the next item's result, or undefined if there are no more items. */
  async next(): Promise<{ readonly result: Promise<PushAllResult<Item>> } | undefined> {
    while (this.#untakenCount === 0 && !this.#isDone) {
      await new Promise<void>((resolve) => {
        this.#onResult = resolve
      })
    }
    const result = this.#results[this.#takenCount]
    if (result === undefined) return undefined
    this.#takenCount += 1
    this.#onRoom?.()
    return { result }
  }

  /** Stops pushing. An item that the source still delivers is dropped. */
  stop(): void {
    this.#isStopped = true
    this.#onRoom?.()
  }

  /** Rethrows the error of the source. Call this after the results of all items before it have been taken. */
  throwSourceError(): void {
    if (this.#failure !== undefined) throw this.#failure.error
  }

  async #run(): Promise<void> {
    const { items, stream } = this.#options
    try {
      for await (const item of items) {
        if (this.#mustMakeRoom) await this.#makeRoom()
        await stream.ready()
        if (this.#isStopped) break
        const result = pushed(stream, item)
        // The consumer handles the rejection when it takes the result.
        result.catch(() => undefined)
        this.#results.push(result)
        this.#onResult?.()
      }
    } catch (error) {
      this.#failure = { error }
    }
    this.#isDone = true
    this.#onResult?.()
  }

  get #untakenCount(): number {
    return this.#results.length - this.#takenCount
  }

  get #mustMakeRoom(): boolean {
    const { resultsMax } = this.#options
    return this.#takenCount >= resultsMax || this.#untakenCount >= resultsMax
  }

  async #makeRoom(): Promise<void> {
    const { resultsMax } = this.#options
    if (this.#takenCount >= resultsMax) {
      this.#results = this.#results.slice(this.#takenCount)
      this.#takenCount = 0
    }
    while (this.#untakenCount >= resultsMax && !this.#isStopped) {
      await new Promise<void>((resolve) => {
        this.#onRoom = resolve
      })
    }
  }
}

function pushed<Payloads extends UpdatePayloads, Item extends PushItem<Payloads>>(
  stream: PushStream<Payloads>,
  item: Item,
): Promise<PushAllResult<Item>> {
  return stream.push(item.botId, item.update, item.options).then(
    (result) => ({ item, result }),
    (error: unknown) => {
      if (error instanceof PostboteClientError) return { item, error }
      throw error
    },
  )
}
