/**
 * Sends the part of an NDJSON stream that belongs to one other owner. Its pairs are written to one streaming request
 * unchanged, and the result lines are matched to the pairs in order.
 *
 * If the owner is lost, the outcome of pairs without a result is unknown. Those with an idempotency key are sent again;
 * the others get OUTCOME_UNKNOWN. If the owner was killed because it hung, no pair that was sent to it is sent again,
 * because each may be the reason and would hang the successor, too. The next pair opens a new request, which waits for
 * the successor. An owner that is being replaced ends its response normally and has stored nothing without a result, so
 * the rest is sent again, to its successor.
 *
 * While no owner takes the pairs, the feed asks again and again: the shard passes from one owner to the next. The feed of an
 * open stream does so for longer than a single call would, because pairs that were refused would come after later ones. If
 * the producer has ended its stream, there are no later ones, and the pairs get their 503 as soon as any other call.
 */
import type { Clock } from '../../clock.ts'
import { type ErrorCode, PostboteError } from '../../errors.ts'
import { ownerWaitMs } from '../limits.ts'
import type { OwnerResponse, OwnerStream } from '../owners.ts'
import { endColumn, startColumn, type UpdateRows } from '../../shard/update-rows.ts'
import type { ResultBatch } from './result-batch.ts'

/** A pair, as a row of a slice, and the place of its result in the batch of that slice. */
interface Place {
  readonly rows: UpdateRows
  readonly nth: number
  readonly batch: ResultBatch
}

interface Sent extends Place {
  /** Number of times that it was sent again because its owner was lost. */
  repeats: number
}

/** One streaming request. The pairs that were added to it end together if it fails. */
interface Session {
  readonly stream: OwnerStream
  /** Pairs without a result, oldest first. */
  readonly places: Sent[]
  /** How many of them, counted from the end, are not written yet. */
  unsent: number
  /** The value of `hangs` when the session started. */
  readonly hangsBefore: number
  readonly startedAtMs: number
  /** Whether the owner could be reached. */
  isReached: boolean
  hasAnswered: boolean
}

const newline = 0x0a

/** The connection to the owner, whichever process that is now. */
export interface FeedTo {
  /** Opens a request. `isRepeat`: the last one ended a moment ago without a result. */
  open(isRepeat: boolean): OwnerStream
  /** Number of the owner's processes that were killed so far because they hung. */
  hangs(): number
  /** Called for each pair that is refused because its owner did not answer. */
  refused(code: ErrorCode): void
}

/**
 * A pair of a stream whose owner was lost is sent again this often: once to the successor, and once more because the
 * killed process may still have taken the first. A pair that has ended two processes must not end all. If the owner hung,
 * the pair is not sent again.
 */
const pairRepeatsMax = 2
/**
 * An open stream waits this long for an owner that takes its pairs: below the 30 s after which postbote/client takes a
 * silent stream for dead. On a busy machine a worker starts in 10 s.
 */
export const ownerWaitOfStreamMs = 20_000

export class OwnerFeed {
  readonly #to: FeedTo
  readonly #clock: Pick<Clock, 'monotonicMs'>
  #session: Session | undefined
  #isEnded = false
  /** Since when pairs wait and no owner takes any. */
  #waitsSinceMs: number | undefined

  constructor(to: FeedTo, clock: Pick<Clock, 'monotonicMs'>) {
    this.#to = to
    this.#clock = clock
  }

  /** Whether all pairs have their results, so that the next ones may go another way and still get higher ids. */
  get isIdle(): boolean {
    return this.#session === undefined || this.#session.places.length === 0
  }

  add({ rows, nth, batch }: Place): void {
    this.#session ??= this.#start(false)
    this.#send(this.#session, { rows, nth, batch, repeats: 0 })
  }

  /** Sends the added pairs; resolves when more may be sent. */
  async flush(): Promise<void> {
    const session = this.#session
    if (session === undefined || session.unsent === 0) return
    const bytes = linesOf(session.places, session.places.length - session.unsent)
    session.unsent = 0
    if (!session.stream.write(bytes)) await session.stream.drained()
  }

  /** Ends the request after the last pair. Results may still arrive. */
  end(): void {
    this.#isEnded = true
    this.#session?.stream.end()
  }

  #send(session: Session, sent: Sent): void {
    session.places.push(sent)
    session.unsent += 1
  }

  #start(isRepeat: boolean): Session {
    const session: Session = {
      hangsBefore: this.#to.hangs(),
      stream: this.#to.open(isRepeat),
      places: [],
      unsent: 0,
      startedAtMs: this.#clock.monotonicMs(),
      isReached: false,
      hasAnswered: false,
    }
    void this.#readResults(session)
    return session
  }

  async #readResults(session: Session): Promise<void> {
    let failure: PostboteError | undefined
    try {
      const response = await session.stream.response
      session.isReached = true
      await takeLines(response, session)
    } catch (error) {
      failure = error instanceof PostboteError ? error : new PostboteError('OUTCOME_UNKNOWN')
    }
    if (this.#session === session) this.#session = undefined
    session.stream.destroy()
    const unsent = session.places.splice(session.places.length - session.unsent)
    const left = session.places.splice(0)
    session.unsent = 0
    if (left.length + unsent.length === 0) {
      this.#waitsSinceMs = undefined
      return
    }
    if (session.hasAnswered) this.#waitsSinceMs = undefined
    if (this.#mayWait(session, failure)) {
      this.#sendAgain([...left, ...unsent], !session.hasAnswered)
      return
    }
    const error = failure ?? new PostboteError('STORE_UNAVAILABLE')
    const hasHung = this.#to.hangs() !== session.hangsBefore
    const again =
      hasHung && error.code === 'OUTCOME_UNKNOWN'
        ? [...this.#repeatedOf(left, error, 0), ...unsent]
        : this.#repeatedOf([...left, ...unsent], error, pairRepeatsMax)
    this.#sendAgain(again, true)
  }

  /** Whether to look for the next owner: the last one was not reached, or has ended its response and stored nothing more. */
  #mayWait(session: Session, failure: PostboteError | undefined): boolean {
    const isUnreached = failure?.code === 'STORE_UNAVAILABLE' && !session.isReached
    if (failure !== undefined && !isUnreached) return false
    const nowMs = this.#clock.monotonicMs()
    this.#waitsSinceMs ??= session.isReached ? nowMs : session.startedAtMs
    return nowMs - this.#waitsSinceMs < (this.#isEnded ? ownerWaitMs : ownerWaitOfStreamMs)
  }

  /** Runs in the turn in which the session ended, so that no later pair precedes these. */
  #sendAgain(left: readonly Sent[], isRepeat: boolean): void {
    if (left.length === 0) return
    this.#session ??= this.#start(isRepeat)
    for (const sent of left) this.#send(this.#session, sent)
    void this.flush()
    if (this.#isEnded) this.end()
  }

  /** Returns the pairs to send again and sets the results of all others. */
  #repeatedOf(left: readonly Sent[], error: PostboteError, repeatsMax: number): Sent[] {
    // An owner that was lost before may have stored it, whatever its successor reports.
    const ofRepeated = new PostboteError('OUTCOME_UNKNOWN')
    const repeated: Sent[] = []
    for (const sent of left) {
      if (error.code === 'OUTCOME_UNKNOWN' && sent.repeats < repeatsMax && hasKey(sent)) {
        sent.repeats += 1
        repeated.push(sent)
      } else {
        const refusal = sent.repeats > 0 ? ofRepeated : error
        this.#to.refused(refusal.code)
        sent.batch.set(sent.nth, refusal)
      }
    }
    return repeated
  }
}

/** Whether the pair has an idempotency key, so that its owner stores it once however often it is sent. */
function hasKey({ rows, nth }: Place): boolean {
  return rows.hasIdempotencyKey(nth)
}

interface Lines {
  readonly bytes: Buffer
  readonly start: number
  end: number
}

/** Returns the lines of the pairs from `from` on. Pairs that are adjacent in memory are copied in one piece. */
function linesOf(places: readonly Sent[], from: number): Buffer {
  const runs: Lines[] = []
  let total = 0
  let run: Lines | undefined
  for (let at = from; at < places.length; at++) {
    const place = places[at]
    if (place === undefined) continue
    const { bytes } = place.rows
    const start = place.rows.at(place.nth, startColumn)
    const end = place.rows.at(place.nth, endColumn)
    total += end - start + 1
    if (run !== undefined && run.bytes === bytes && run.end + 1 === start) run.end = end
    else {
      run = { bytes, start, end }
      runs.push(run)
    }
  }
  const lines = Buffer.allocUnsafe(total)
  let written = 0
  for (const { bytes, start, end } of runs) {
    written += bytes.copy(lines, written, start, end)
    lines[written++] = newline
  }
  return lines
}

async function takeLines({ status, body }: OwnerResponse, session: Session): Promise<void> {
  if (status !== 200) throw new PostboteError('STORE_UNAVAILABLE')
  body.setEncoding('utf8')
  let rest = ''
  for await (const chunk of body) {
    const lines = (rest + String(chunk)).split('\n')
    rest = lines.pop() ?? ''
    const answered = session.places.splice(0, lines.length)
    session.hasAnswered ||= answered.length > 0
    for (let at = 0; at < answered.length; at++) {
      const place = answered[at]
      place?.batch.set(place.nth, { line: lines[at] ?? '' })
    }
  }
}
