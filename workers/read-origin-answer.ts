/** The Piscina task that reads a large answer of an origin. Its bytes are in memory that the thread shares with the worker process. */

import { workerData } from 'node:worker_threads'
import type { AddedType } from '../src/kit/added-type.ts'
import { setAddedTypes } from '../src/kit/update-types.ts'
import type { AnswerTask } from '../src/features/relay/large-answers.ts'
import { type PlacedAnswer, placeAnswer } from '../src/features/relay/read-origin-answer.ts'

// large-answers.ts has given them.
// oxlint-disable-next-line typescript/no-unsafe-type-assertion
setAddedTypes(workerData as readonly AddedType[])

export default function readOriginAnswer({ memory, bytes, ...raw }: AnswerTask): PlacedAnswer {
  return placeAnswer({ ...raw, body: Buffer.from(memory, 0, bytes) })
}
