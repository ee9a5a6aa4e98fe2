/** All calls of the private API, in the order of docs/reference/openapi.json. */
import { auditOperations } from '../features/keys/audit-operations.ts'
import { botOperations } from '../features/bots/bot-operations.ts'
import { deadLetterOperations } from '../features/look-back/dead-letter-operations.ts'
import { eventOperations } from '../features/events/event-operations.ts'
import { fleetOperations } from '../features/fleet/fleet-operations.ts'
import { keyOperations } from '../features/keys/key-operations.ts'
import { lookBackOperations } from '../features/look-back/look-back-operations.ts'
import type { Operation } from '../api/operation.ts'
import { CallTable } from '../api/call-table.ts'
import { portalOperations } from '../features/portal/portal-operations.ts'
import { relayOperations } from '../features/relay/relay-operations.ts'
import { replayOperations } from '../features/look-back/replay-operations.ts'
import { serverOperations } from '../features/server/server-operations.ts'
import { sessionOperations } from '../features/keys/session-operations.ts'
import { shardOperations } from '../features/backup/shard-operations.ts'
import { signingKeyOperations } from '../features/signing/signing-key-operations.ts'
import { tailOperations } from '../features/tail/tail-operations.ts'
import { updateOperations } from '../features/ingest/update-operations.ts'
import { webhookOperations } from '../features/bots/webhook-operations.ts'

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

/** Finds the call that a request makes. */
export const callTable = new CallTable(apiOperations)
