/**
 * One NDJSON request: pieces of pairs out as fast as the connection takes them, lines of results in. A stream has one
 * after the other; what a broken one means for its pairs is the stream's business.
 *
 *   take() --PairSource--> undici --> server --> undici --LineSplitter--> onResults(lines)
 */
import { Readable } from 'node:stream'
import { StringDecoder } from 'node:string_decoder'
import type { Client, Dispatcher } from 'undici'
import { clientAnswerBytesMax, clientResultLengthMax } from '../limits.ts'
import { answerError } from './answer-error.ts'
import type { PairRequest, PairRequestEvents } from './pair-request.ts'
import { PostboteClientError } from './postbote-client-error.ts'
import { type ServerConnection, toClientError } from './server-connection.ts'

export type StreamConnection = Pick<ServerConnection, 'streamClient' | 'streamRequest'>

export class StreamRequest implements PairRequest {
  readonly #connection: StreamConnection
  readonly #events: PairRequestEvents
  readonly #source: PairSource
  readonly #client: Client
  readonly #controller = new AbortController()
  #reason: PostboteClientError | undefined
  readonly ended: Promise<PostboteClientError | undefined>

  constructor(connection: StreamConnection, events: PairRequestEvents) {
    this.#connection = connection
    this.#events = events
    this.#source = new PairSource(() => events.take())
    this.#client = connection.streamClient()
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
    try {
      const answer = await this.#client.request({
        ...this.#connection.streamRequest,
        body: this.#source,
        signal: this.#controller.signal,
      })
      if (answer.statusCode !== 200) throw answerError(answer, await refusalText(answer.body))
      await this.#read(answer.body)
      return undefined
    } catch (error) {
      return this.#reason ?? toClientError(error)
    } finally {
      this.#source.end()
      void this.#client.destroy()
    }
  }

  async #read(body: Dispatcher.ResponseData['body']): Promise<void> {
    const decoder = new StringDecoder('utf8')
    let rest = ''
    for await (const chunk of body) {
      const lines = (rest + decoder.write(chunk)).split('\n')
      rest = lines.pop() ?? ''
      if (rest.length > clientResultLengthMax) throw new PostboteClientError('UNEXPECTED_ANSWER')
      if (lines.length > 0) this.#events.onResults(lines)
    }
  }
}

/** The body of the request: asks for the next piece whenever the connection has room for it. */
class PairSource extends Readable {
  readonly #take: () => string | undefined
  #isAsked = false
  #isEnded = false

  constructor(take: () => string | undefined) {
    // Nothing is read ahead: what is taken counts as sent.
    super({ highWaterMark: 1 })
    this.#take = take
    // Whoever reads it is told, too; nobody else needs to be.
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

async function refusalText(body: Dispatcher.ResponseData['body']): Promise<string> {
  let text = ''
  for await (const chunk of body) {
    text += String(chunk)
    if (text.length > clientAnswerBytesMax) break
  }
  return text
}
