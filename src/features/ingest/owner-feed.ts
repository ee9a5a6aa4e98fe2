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
 * the producer has ended its stream, there are no later ones, and the pairs get their 503 as soon as any other call (`OwnerWait`).
 */
import type { Clock } from '../../kit/clock.ts'
import { type ErrorCode, PostboteError } from '../../kit/errors.ts'
import { ownerWaitMsMax } from '../../api/limits.ts'
import { OwnerWait, ShardMoves } from '../../links/owner-wait.ts'
import type { OwnerResponse, OwnerStream } from '../../links/ask/owner-stream.ts'
import { endColumn, startColumn, type UpdateRows } from '../../shard/update-rows.ts'
import type { ResultBatch } from './result-batch.ts'

/** A pair, as a row of a slice, and the place of its result in the batch of that slice. */
interface AddedPair {
  readonly rows: UpdateRows
  readonly nth: number
  readonly batch: ResultBatch
}

/** The pairs of one slice that were added one after the other: one object for each slice, because it outlives many others. */
interface Sent {
  readonly rows: UpdateRows
  readonly batch: ResultBatch
  readonly nths: number[]
  /** How many of them have results. */
  answered: number
  /** Number of times that they were sent again because their owner was lost. */
  readonly repeats: number
}

/** One streaming request. The pairs that were added to it end together if it fails. */
interface Session {
  readonly stream: OwnerStream
  /** Those with pairs without a result, oldest first. */
  readonly inFlight: Sent[]
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

export class OwnerFeed {
  readonly #to: FeedTo
  readonly #clock: Pick<Clock, 'monotonicMs'>
  #session: Session | undefined
  #isEnded = false
  /** While pairs wait and no owner takes any. */
  #wait: OwnerWait | undefined

  constructor(to: FeedTo, clock: Pick<Clock, 'monotonicMs'>) {
    this.#to = to
    this.#clock = clock
  }

  /** Whether all pairs have their results, so that the next ones may go another way and still get higher ids. */
  get isIdle(): boolean {
    return this.#session === undefined || this.#session.inFlight.length === 0
  }

  add({ rows, nth, batch }: AddedPair): void {
    this.#session ??= this.#start(false)
    const { inFlight, unsent } = this.#session
    const last = unsent > 0 ? inFlight.at(-1) : undefined
    if (last?.batch === batch && last.repeats === 0) last.nths.push(nth)
    else this.#send(this.#session, { rows, batch, nths: [nth], answered: 0, repeats: 0 })
  }

  /** Sends the added pairs; resolves when more may be sent. */
  async flush(): Promise<void> {
    const session = this.#session
    if (session === undefined || session.unsent === 0) return
    const bytes = linesOf(session.inFlight, session.inFlight.length - session.unsent)
    session.unsent = 0
    if (!session.stream.write(bytes)) await session.stream.drained()
  }

  /** Ends the request after the last pair. Results may still arrive. */
  end(): void {
    this.#isEnded = true
    this.#session?.stream.end()
  }

  #send(session: Session, sent: Sent): void {
    session.inFlight.push(sent)
    session.unsent += 1
  }

  #start(isRepeat: boolean): Session {
    const session: Session = {
      hangsBefore: this.#to.hangs(),
      stream: this.#to.open(isRepeat),
      inFlight: [],
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
    const unsent = session.inFlight.splice(session.inFlight.length - session.unsent)
    const left = session.inFlight.splice(0)
    session.unsent = 0
    if (left.length + unsent.length === 0) {
      this.#wait = undefined
      return
    }
    if (session.hasAnswered) this.#wait = undefined
    if (this.#mayWait(session, failure)) {
      const isNamed = failure instanceof ShardMoves && failure.isElsewhere
      this.#sendAgain([...left, ...unsent], !session.hasAnswered && !isNamed)
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
    this.#wait ??= new OwnerWait(this.#clock, session.isReached ? undefined : session.startedAtMs)
    if (failure instanceof ShardMoves) this.#wait.renew()
    return this.#isEnded ? !this.#wait.isOver : this.#wait.waitedMs < ownerWaitMsMax
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
    for (const { rows, batch, nths, answered, repeats } of left) {
      const mayRepeat = error.code === 'OUTCOME_UNKNOWN' && repeats < repeatsMax
      const refusal = repeats > 0 ? ofRepeated : error
      const again: number[] = []
      for (const nth of nths.slice(answered)) {
        if (mayRepeat && rows.hasIdempotencyKey(nth)) again.push(nth)
        else {
          this.#to.refused(refusal.code)
          batch.set(nth, refusal)
        }
      }
      if (again.length > 0) {
        repeated.push({ rows, batch, nths: again, answered: 0, repeats: repeats + 1 })
      }
    }
    return repeated
  }
}

interface Lines {
  readonly bytes: Buffer
  readonly start: number
  end: number
}

/** Returns the lines of the pairs from `from` on. Pairs that are adjacent in memory are copied in one piece. */
function linesOf(inFlight: readonly Sent[], from: number): Buffer {
  const runs: Lines[] = []
  let total = 0
  let run: Lines | undefined
  for (const { rows, nths, answered } of inFlight.slice(from)) {
    const { bytes } = rows
    for (let at = answered; at < nths.length; at++) {
      const nth = nths[at] ?? 0
      const start = rows.at(nth, startColumn)
      const end = rows.at(nth, endColumn)
      total += end - start + 1
      if (run !== undefined && run.bytes === bytes && run.end + 1 === start) run.end = end
      else {
        run = { bytes, start, end }
        runs.push(run)
      }
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
  const { inFlight } = session
  body.setEncoding('utf8')
  let rest = ''
  for await (const chunk of body) {
    const lines = (rest + String(chunk)).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) {
      const [sent] = inFlight
      const nth = sent?.nths[sent.answered]
      if (sent === undefined || nth === undefined) break
      session.hasAnswered = true
      sent.answered += 1
      if (sent.answered === sent.nths.length) inFlight.shift()
      sent.batch.set(nth, { line })
    }
  }
}
