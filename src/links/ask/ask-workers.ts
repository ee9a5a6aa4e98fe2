/** Asks other workers questions, one of them or all. */
import type { FastifyRequest } from 'fastify'
import { type Clock, sleep } from '../../kit/clock.ts'
import { PostboteError } from '../../kit/errors.ts'
import type { LookPayer } from '../../queue/kept/look-payer.ts'
import { type Owners, type OwnerStream, postToOwner } from './owner-stream.ts'
import type { AnswerOf, AnswersTo, InputOf, Question } from './question.ts'

/** The worker that a question is for. */
export interface Asked {
  /** Opens a request to it. */
  readonly open: (path: string) => OwnerStream
  /** Gives the question up when it is aborted. */
  readonly signal: AbortSignal
}

/**
 * Asks one worker.
 *
 * @throws NOT_FOUND if it refuses to answer; STORE_UNAVAILABLE or OUTCOME_UNKNOWN if it is lost, or has another problem
 */
export async function ask<Row extends Question<never, unknown>>(
  { open, signal }: Asked,
  { path, query }: Row,
  input: InputOf<Row>,
): Promise<AnswerOf<Row>> {
  const body = input === undefined || query !== undefined ? '' : JSON.stringify(input)
  const target = query === undefined ? path : `${path}?${queryText(input)}`
  const { status, text } = await postToOwner(open(target), body, signal)
  if (status === 200) return JSON.parse(text)
  throw new PostboteError(status === 404 ? 'NOT_FOUND' : 'STORE_UNAVAILABLE')
}

function queryText(input: unknown): string {
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries(Object(input))) {
    if (typeof value === 'string' || typeof value === 'number') query.set(name, `${value}`)
  }
  return query.toString()
}

type Questions = Readonly<Record<string, Question<never, unknown>>>

/** What routes have that ask all workers some questions, and answer them to others. */
export interface AskingRoute {
  readonly clock: Clock
  ownersOf(request: FastifyRequest): Owners
  /** Whether another worker sent the request. */
  isForwarded(request: FastifyRequest): boolean
}

export interface AllAsked<Rows extends Questions> {
  readonly clock: Clock
  /** What this worker answers. */
  readonly answers: AnswersTo<Rows>
  readonly owners: Pick<Owners, 'others' | 'isOtherNode' | 'openStream'>
  /** Default: `workersAnswerMs`. */
  readonly withinMs?: number
  readonly paid?: PaidQuestion
}

/** Who pays for a question that costs much. */
export interface PaidQuestion {
  readonly payer: LookPayer | undefined
  /** What it costs this worker, so about as much as each other one. */
  readonly costMs: number
}

/** What one worker answered. */
export interface WorkerAnswer<Answer> {
  readonly answer: Answer
  /** Whether the worker is one of another node. */
  readonly isOtherNode: boolean
}

/**
 * A question about all bots waits this long for the other workers: longer than for one that is being replaced
 * (`ownerWaitMs`), and no longer for one that hangs.
 */
export const workersAnswerMs = 5_000

/**
 * Asks all workers at once, this one among them.
 *
 * @param name - of one of the questions
 * @returns the answers of those that answered in time, in any order. A worker that is down or hangs is
 *   left out.
 * @throws what this worker itself throws.
 */
export async function askWorkers<Rows extends Questions, Name extends keyof Rows>(
  { clock, owners, answers, withinMs = workersAnswerMs, paid }: AllAsked<Rows>,
  questions: Rows,
  name: Name,
  input: InputOf<Rows[Name]>,
): Promise<readonly WorkerAnswer<AnswerOf<Rows[Name]>>[]> {
  if (paid !== undefined) await pay(paid, owners)
  const over = new AbortController()
  const { signal } = over
  const answered: WorkerAnswer<AnswerOf<Rows[Name]>>[] = []
  const others = owners.others.map(async (owner) => {
    const open = (path: string): OwnerStream => owners.openStream(owner, path)
    try {
      const answer = await ask({ open, signal }, questions[name], input)
      if (!signal.aborted) answered.push({ answer, isOtherNode: owners.isOtherNode(owner) })
    } catch (error) {
      if (!(error instanceof PostboteError) && !signal.aborted) throw error
    }
  })
  const late = sleep(clock, withinMs, signal)
  try {
    const own = async (): Promise<void> => {
      answered.push({ answer: await answers[name](input), isOtherNode: false })
    }
    // All at once: another worker may break its promise, as with an answer that is no JSON, while this one still thinks.
    await Promise.all([own(), Promise.race([Promise.all(others), late])])
  } finally {
    over.abort()
  }
  return answered
}

/**
 * The others do not know who asks them, so all of it is paid here. It is paid before anybody is asked: many questions that come
 * at once would all begin otherwise.
 */
async function pay(
  { payer, costMs }: PaidQuestion,
  { others }: Pick<Owners, 'others'>,
): Promise<void> {
  const turn = payer?.turn()
  // In the same turn of the event loop, others would ask for theirs before this is charged.
  if (turn !== undefined) await turn
  payer?.charge(costMs * (others.length + 1))
}
