/** All questions of workers to each other, by what worker-answers.ts calls them. Their paths are told where they are declared. */
import { keysOwnerQuestions } from '../access/key-sync.ts'
import { botQuestions } from '../features/bots/bot-routes.ts'
import { eventQuestions } from '../features/events/event-routes.ts'
import { fleetQuestions } from '../features/fleet/fleet-routes.ts'
import { keyQuestions } from '../features/keys/key-routes.ts'
import { sessionQuestions } from '../features/keys/session-routes.ts'
import { historyQuestions } from '../features/server/history-routes.ts'
import type { AnswersTo } from '../links/ask/question.ts'
import { nodeQuestions } from '../nodes/node-routes.ts'

export const workerQuestions = {
  ...fleetQuestions,
  ...historyQuestions,
  ...botQuestions,
  ...nodeQuestions,
  ...eventQuestions,
  ...keysOwnerQuestions,
  ...keyQuestions,
  ...sessionQuestions,
}

/** What a worker answers. */
export type WorkerAnswers = AnswersTo<typeof workerQuestions>
