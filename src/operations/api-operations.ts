/** All calls of the private API, in the order of docs/reference/openapi.json. */
import { auditOperations } from './audit-operations.ts'
import { botOperations } from './bot-operations.ts'
import { deadLetterOperations } from './dead-letter-operations.ts'
import { eventOperations } from './event-operations.ts'
import { fleetOperations } from './fleet-operations.ts'
import { keyOperations } from './key-operations.ts'
import { lookBackOperations } from './look-back-operations.ts'
import type { Operation } from './operation.ts'
import { portalOperations } from './portal-operations.ts'
import { relayOperations } from './relay-operations.ts'
import { replayOperations } from './replay-operations.ts'
import { serverOperations } from './server-operations.ts'
import { sessionOperations } from './session-operations.ts'
import { shardOperations } from './shard-operations.ts'
import { signingKeyOperations } from './signing-key-operations.ts'
import { tailOperations } from './tail-operations.ts'
import { updateOperations } from './update-operations.ts'
import { webhookOperations } from './webhook-operations.ts'

const byId = {
  ...updateOperations,
  ...tailOperations,
  ...lookBackOperations,
  ...replayOperations,
  ...botOperations,
  ...fleetOperations,
  ...relayOperations,
  ...webhookOperations,
  ...deadLetterOperations,
  ...signingKeyOperations,
  ...portalOperations,
  ...eventOperations,
  ...keyOperations,
  ...auditOperations,
  ...serverOperations,
  ...sessionOperations,
  ...shardOperations,
}

/** The declarations of all calls, by their ids. */
export type ApiOperations = typeof byId

export const apiOperations: readonly Operation[] = Object.values(byId)
