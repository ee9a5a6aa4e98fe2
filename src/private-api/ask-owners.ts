/** Asks every worker the same question, for responses that are about the bots of all of them. */
import type { Clock } from '../clock.ts'
import { PostboteError } from '../errors.ts'
import { type OwnerLinks, postToOwner } from './owner-links.ts'

export interface OwnersQuestion<Answer> {
  readonly clock: Clock
  readonly links: OwnerLinks
  /** The path of the question. Each of the other workers gets it as a POST request without a body. */
  readonly path: string
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
 * @returns the answers of those that answered, in any order. One that is down is waited for, as by every call
 *   (`postToOwner`), and then left out.
 * @throws whatever `own` throws.
 */
export async function askOwners<Answer>(
  question: OwnersQuestion<Answer>,
): Promise<readonly OwnerAnswer<Answer>[]> {
  const { clock, links, path, own } = question
  const ask = async (owner: number): Promise<OwnerAnswer<Answer>[]> => {
    try {
      const { status, text } = await postToOwner(clock, () => links.openStream(owner, path))
      if (status !== 200) return []
      const answer: Answer = JSON.parse(text)
      return [{ answer, isOtherNode: links.isOtherNode(owner) }]
    } catch (error) {
      if (error instanceof PostboteError) return []
      throw error
    }
  }
  const others = links.others.map((owner) => ask(owner))
  const answer = await own()
  return [{ answer, isOtherNode: false }, ...(await Promise.all(others)).flat()]
}
