/**
 * The part of an NDJSON stream that goes to one other owner: its pairs are written to one streaming request, as
 * they came, and its result lines are given back to the pairs in order.
 *
 * When the owner is lost, pairs without a result have an unknown outcome; the next pair opens a new request, which
 * waits for the successor. An owner that is replaced ends its answer normally, and has taken nothing that it has not
 * answered: the rest is sent again, to its successor.
 */
import type { IncomingMessage } from 'node:http'
import { PostboteError } from '../errors.ts'
import { emptyAnswersMax } from '../limits.ts'
import type { OwnerStream } from './owner-links.ts'
import type { Pair } from './pair-splitter.ts'
import { privateErrorText } from './private-error.ts'
import type { ResultBatch } from './result-batch.ts'

interface Place {
  readonly batch: ResultBatch
  readonly index: number
}

interface Sent extends Place {
  readonly pair: Pair
}

/** One streaming request. What was added to it shares its fate. */
interface Session {
  readonly stream: OwnerStream
  /** Pairs whose result has not come, oldest first. */
  readonly places: Sent[]
  unsent: Buffer[]
  hasAnswered: boolean
}

const newline = Buffer.from('\n')

export class OwnerFeed {
  readonly #open: () => OwnerStream
  #session: Session | undefined
  #isEnded = false
  #emptyAnswers = 0

  constructor(open: () => OwnerStream) {
    this.#open = open
  }

  add(pair: Pair, place: Place): void {
    this.#session ??= this.#start()
    this.#session.places.push({ ...place, pair })
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
    this.#isEnded = true
    this.#session?.stream.end()
  }

  #start(): Session {
    const session: Session = { stream: this.#open(), places: [], unsent: [], hasAnswered: false }
    void this.#readResults(session)
    return session
  }

  async #readResults(session: Session): Promise<void> {
    let failure: PostboteError | undefined
    try {
      await takeLines(await session.stream.response, session)
    } catch (error) {
      failure = error instanceof PostboteError ? error : new PostboteError('OUTCOME_UNKNOWN')
    }
    if (this.#session === session) this.#session = undefined
    session.stream.destroy()
    const left = session.places.splice(0)
    this.#emptyAnswers = session.hasAnswered ? 0 : this.#emptyAnswers + 1
    if (failure === undefined && this.#emptyAnswers <= emptyAnswersMax) {
      this.#sendAgain(left)
      return
    }
    // An owner that ends its answers without one again and again will not answer the next time either.
    const line = privateErrorText(failure ?? new PostboteError('STORE_UNAVAILABLE'))
    for (const { batch, index } of left) batch.set(index, line)
  }

  /** In the same turn in which the session ended, so that no later pair comes before these. */
  #sendAgain(left: readonly Sent[]): void {
    if (left.length === 0) return
    for (const { pair, ...place } of left) this.add(pair, place)
    void this.flush()
    if (this.#isEnded) this.end()
  }
}

async function takeLines(response: IncomingMessage, session: Session): Promise<void> {
  if (response.statusCode !== 200) throw new PostboteError('STORE_UNAVAILABLE')
  response.setEncoding('utf8')
  let rest = ''
  for await (const chunk of response) {
    const lines = (rest + String(chunk)).split('\n')
    rest = lines.pop() ?? ''
    const answered = session.places.splice(0, lines.length)
    session.hasAnswered ||= answered.length > 0
    for (const [position, { batch, index }] of answered.entries()) {
      batch.set(index, lines[position] ?? '')
    }
  }
}
