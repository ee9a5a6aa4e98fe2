/**
 * The part of an NDJSON stream that goes to one other owner: its pairs are written to one streaming request, as
 * they came, and its result lines are given back to the pairs in order.
 *
 * When the owner is lost, pairs without a result have an unknown outcome; the next pair opens a new request, which
 * waits for the successor.
 */
import type { IncomingMessage } from 'node:http'
import { PostboteError } from '../errors.ts'
import type { OwnerStream } from './owner-links.ts'
import type { Pair } from './pair-splitter.ts'
import { privateErrorText } from './private-error.ts'
import type { ResultBatch } from './result-batch.ts'

interface Place {
  readonly batch: ResultBatch
  readonly index: number
}

/** One streaming request. What was added to it shares its fate. */
interface Session {
  readonly stream: OwnerStream
  /** Pairs whose result has not come, oldest first. */
  readonly places: Place[]
  unsent: Buffer[]
}

const newline = Buffer.from('\n')

export class OwnerFeed {
  readonly #open: () => OwnerStream
  #session: Session | undefined

  constructor(open: () => OwnerStream) {
    this.#open = open
  }

  add(pair: Pair, place: Place): void {
    this.#session ??= this.#start()
    this.#session.places.push(place)
    this.#session.unsent.push(pair.header, newline, pair.update, newline)
  }

  /** Sends what was added; resolves when more may be. */
  async flush(): Promise<void> {
    const session = this.#session
    if (session === undefined || session.unsent.length === 0) return
    const bytes = Buffer.concat(session.unsent)
    session.unsent = []
    if (!session.stream.write(bytes)) await session.stream.drained()
  }

  /** No more pairs come; results still do. */
  end(): void {
    this.#session?.stream.end()
  }

  #start(): Session {
    const session: Session = { stream: this.#open(), places: [], unsent: [] }
    void this.#readResults(session)
    return session
  }

  async #readResults(session: Session): Promise<void> {
    let failure = new PostboteError('OUTCOME_UNKNOWN')
    try {
      await takeLines(await session.stream.response, session.places)
    } catch (error) {
      if (error instanceof PostboteError) failure = error
    }
    if (this.#session === session) this.#session = undefined
    session.stream.destroy()
    const line = privateErrorText(failure)
    for (const { batch, index } of session.places.splice(0)) batch.set(index, line)
  }
}

async function takeLines(response: IncomingMessage, places: Place[]): Promise<void> {
  if (response.statusCode !== 200) throw new PostboteError('STORE_UNAVAILABLE')
  response.setEncoding('utf8')
  let rest = ''
  for await (const chunk of response) {
    const lines = (rest + String(chunk)).split('\n')
    rest = lines.pop() ?? ''
    for (const [position, { batch, index }] of places.splice(0, lines.length).entries()) {
      batch.set(index, lines[position] ?? '')
    }
  }
}
