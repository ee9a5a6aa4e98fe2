/** A producer that uses postbote/client as documented: it pushes to streams that it opens, or by `pushAll`. */
import { PostboteClient } from '../../clients/typescript/postbote-client.ts'
import type { IngestSample } from '../ingest-sample.ts'
import { ProducerItems, type ProducerQuestion } from '../producer-items.ts'
import { serveHelper } from './serve-helper.ts'

export interface ClientProducerQuestion extends ProducerQuestion {
  readonly way: 'stream' | 'pushAll'
}

interface Place {
  readonly endMs: number
  readonly first: number
}

class ClientProducer {
  readonly #items: ProducerItems
  readonly #client: PostboteClient
  #stored = 0
  #failure: unknown

  constructor(question: ClientProducerQuestion) {
    const { port, adminKey } = question
    this.#items = new ProducerItems(question)
    this.#client = new PostboteClient({ url: `http://127.0.0.1:${port}`, key: adminKey })
  }

  async run({ way, streams, durationMs }: ClientProducerQuestion): Promise<IngestSample> {
    this.#stored = 0
    const startMs = performance.now()
    const endMs = startMs + durationMs
    await Promise.all(
      Array.from({ length: streams }, (_, index) => {
        const place = { endMs, first: this.#items.firstOf(index, streams) }
        return way === 'stream' ? this.#stream(place) : this.#pushAll(place)
      }),
    )
    if (this.#failure !== undefined) throw this.#failure
    return { operations: this.#stored, seconds: (performance.now() - startMs) / 1_000 }
  }

  async #stream({ endMs, first }: Place): Promise<void> {
    const stream = this.#client.openStream()
    const onStored = (): void => {
      this.#stored += 1
    }
    const onRefused = (error: unknown): void => {
      this.#failure ??= error
    }
    for (const { botId, update } of this.#items.until(endMs, first)) {
      await stream.ready()
      stream.push(botId, update).then(onStored, onRefused)
    }
    await stream.close()
  }

  async #pushAll({ endMs, first }: Place): Promise<void> {
    for await (const { error } of this.#client.pushAll(this.#items.until(endMs, first))) {
      if (error !== undefined) throw error
      this.#stored += 1
    }
  }
}

let producer: ClientProducer | undefined

serveHelper((question: ClientProducerQuestion) => {
  producer ??= new ClientProducer(question)
  return producer.run(question)
})
