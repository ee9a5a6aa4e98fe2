/** Asks every worker the same question, for responses that are about the bots of all of them. */
import { type Clock, sleep } from '../clock.ts'
import { PostboteError } from '../errors.ts'
import { ownersAnswerMs } from './limits.ts'
import { type Owners, type OwnerStream, postToOwner } from './owners.ts'

export interface OwnersQuestion<Answer> {
  readonly clock: Clock
  readonly owners: Owners
  /** The path of the question. Each of the other workers gets it as a POST request without a body. */
  readonly path: string
  /** Default: `ownersAnswerMs`. */
  readonly withinMs?: number
  /** Returns the answer of this worker. */
  own(): Promise<Answer>
}

/** What one worker answered. */
export interface OwnerAnswer<Answer> {
  readonly answer: Answer
  /** Whether the worker is one of another node. */
  readonly isOtherNode: boolean
}

/**
 * Asks all workers at once.
 *
 * @returns the answers of those that answered in time, in any order. A worker that is down or hangs is
 *   left out.
 * @throws whatever `own` throws.
 */
export async function askOwners<Answer>(
  question: OwnersQuestion<Answer>,
): Promise<readonly OwnerAnswer<Answer>[]> {
  const { clock, owners, withinMs = ownersAnswerMs } = question
  const over = new AbortController()
  const answers: OwnerAnswer<Answer>[] = []
  const others = owners.others.map(async (owner) => {
    const answer = await answerOf(question, owner, over.signal)
    if (answer !== undefined) answers.push({ answer, isOtherNode: owners.isOtherNode(owner) })
  })
  const late = sleep(clock, withinMs, over.signal)
  try {
    answers.push({ answer: await question.own(), isOtherNode: false })
    await Promise.race([Promise.all(others), late])
  } finally {
    over.abort()
  }
  return answers
}

/** Returns undefined if the worker is lost or refuses. */
async function answerOf<Answer>(
  { clock, owners, path }: OwnersQuestion<Answer>,
  owner: number,
  signal: AbortSignal,
): Promise<Answer | undefined> {
  try {
    const open = (): OwnerStream => owners.openStream(owner, path)
    const { status, text } = await postToOwner(clock, open, { signal })
    return status === 200 && !signal.aborted ? JSON.parse(text) : undefined
  } catch (error) {
    if (error instanceof PostboteError || signal.aborted) return undefined
    throw error
  }
}
