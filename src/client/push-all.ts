/**
 * The easy way: all that comes from an iterable through one stream, results in order.
 *
 * Items are read while there is room in the stream and while the results that nobody has taken yet are no more than the
 * stream may have under way, so a slow server and a slow consumer both slow the source down.
 */
import { PostboteClientError } from './postbote-client-error.ts'
import type { PushStream } from './push-stream.ts'
import type { PushItem, PushResult, UpdatePayloads } from './pushed-update.ts'

/** An item with what became of it. */
export type PushAllResult<Item> =
  | { readonly item: Item; readonly result: PushResult; readonly error?: never }
  | { readonly item: Item; readonly result?: never; readonly error: PostboteClientError }

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

/** Reads and pushes on its own; what it has pushed is taken from it in order. */
class Pump<Payloads extends UpdatePayloads, Item extends PushItem<Payloads>> {
  readonly #options: PumpOptions<Payloads, Item>
  #results: Promise<PushAllResult<Item>>[] = []
  /** Of those, at the front. */
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

  /** The result of the next item, which may not be there yet; undefined where there are no more items. */
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

  /** Nothing more is pushed. An item that the source is still being asked for is dropped when it comes. */
  stop(): void {
    this.#isStopped = true
    this.#onRoom?.()
  }

  /** Where the source failed; for when the results of all items before that have been taken. */
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
        // Whoever takes it is told.
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
