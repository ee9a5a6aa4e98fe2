/** What other features need of bots and their webhooks: the calls that they make, and what they may show of a bot. */
import type { ResultOf } from '../../api/operation.ts'
import { botOperations } from './bot-operations.ts'
import { webhookOperations } from './webhook-operations.ts'

const { getBot } = botOperations
const { listAttempts } = webhookOperations

/** What `botFields` of a module may return: a field that the row of getBot lacks does not compile. */
export type ShownFields = Partial<ResultOf<typeof getBot>>

export const needs = { getBot, listAttempts }
