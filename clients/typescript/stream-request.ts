/**
 * One NDJSON request: sends pieces of pairs as fast as the connection accepts them and receives lines of results.
 *
 * A stream opens one request after another and decides what a broken one means for its pairs.
 *
 *   take() --PairSource--> undici --> server --> undici --#read, split into lines--> onResults(lines)
 */
import { Readable } from 'node:stream'
import { StringDecoder } from 'node:string_decoder'
import type { Client, Dispatcher } from 'undici'
import type { LanePlace } from './lane-map.ts'
import { responseError, responseText } from './response-error.ts'
import type { PairRequest, PairRequestEvents } from './pair-request.ts'
import { PostboteClientError } from './postbote-client-error.ts'
import { toClientError } from './server-connection.ts'
import { kib } from '../../src/kit/limits.ts'

/** A line of the response to a stream may have this many characters: a result has 50, an error a few hundred. */
const clientResultLengthMax = 64 * kib

/** Sends one stream request. It starts when it is constructed. */
export class StreamRequest implements PairRequest {
  readonly #place: LanePlace
  readonly #events: PairRequestEvents
  readonly #source: PairSource
  readonly #client: Client
  readonly #controller = new AbortController()
  #reason: PostboteClientError | undefined
  readonly ended: Promise<PostboteClientError | undefined>

  constructor(place: LanePlace, events: PairRequestEvents) {
    this.#place = place
    this.#events = events
    this.#source = new PairSource(() => events.take())
    this.#client = place.connection.streamClient()
    this.ended = this.#run()
  }

  wake(): void {
    this.#source.wake()
  }

  end(): void {
    this.#source.end()
  }

  destroy(reason: PostboteClientError): void {
    this.#reason ??= reason
    this.#controller.abort()
  }

  async #run(): Promise<PostboteClientError | undefined> {
    const { connection, shard } = this.#place
    const path = shard === undefined ? '/v1/updates' : `/v1/updates?shard=${shard}`
    const headers = { 'content-type': 'application/x-ndjson' }
    try {
      const response = await this.#client.request({
        ...connection.requestOf({ method: 'POST', path, headers }),
        body: this.#source,
        signal: this.#controller.signal,
      })
      if (response.statusCode !== 200) {
        const refusal = responseError(response, await responseText(response.body))
        throw connection.withoutKey(refusal)
      }
      await this.#read(response)
      return undefined
    } catch (error) {
      return this.#reason ?? toClientError(error)
    } finally {
      this.#source.end()
      void this.#client.destroy()
    }
  }

  async #read({ body, headers }: Dispatcher.ResponseData): Promise<void> {
    const decoder = new StringDecoder('utf8')
    let rest = ''
    for await (const chunk of body) {
      const lines = (rest + decoder.write(chunk)).split('\n')
      rest = lines.pop() ?? ''
      if (rest.length > clientResultLengthMax) throw new PostboteClientError('UNEXPECTED_ANSWER')
      if (lines.length > 0) this.#events.onResults(lines)
    }
    // Pairs are sent again after a normal end, also without a key: neither half a result, nor the mere end of the connection, is one.
    const hasEnd = 'content-length' in headers || 'transfer-encoding' in headers
    if (rest !== '' || !hasEnd) throw new PostboteClientError('CONNECTION_LOST')
  }
}

/** The body of the request. It takes the next piece when the connection has room for it. */
class PairSource extends Readable {
  readonly #take: () => string | undefined
  #isAsked = false
  #isEnded = false

  constructor(take: () => string | undefined) {
    // A piece counts as sent when it is taken, so nothing is read ahead.
    super({ highWaterMark: 1 })
    this.#take = take
    // undici reports the error to the request; without a listener it would be an uncaught exception, too.
    this.on('error', () => undefined)
  }

  override _read(): void {
    this.#isAsked = true
    this.wake()
  }

  wake(): void {
    if (!this.#isAsked || this.#isEnded) return
    const piece = this.#take()
    if (piece === undefined) return
    this.#isAsked = false
    this.push(piece)
  }

  end(): void {
    if (this.#isEnded) return
    this.#isEnded = true
    this.push(null)
  }
}
