/** The calls about a bot and its webhook that other features make. */
import { botOperations } from './bot-operations.ts'
import { webhookOperations } from './webhook-operations.ts'

const { getBot } = botOperations
const { listAttempts } = webhookOperations

export const needs = { getBot, listAttempts }
