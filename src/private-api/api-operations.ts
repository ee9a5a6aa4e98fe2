/** All operations of the private API, in the order of docs/reference/openapi.json. */
import { botOperations } from './bot-operations.ts'
import { deadLetterOperations } from './dead-letter-operations.ts'
import { eventOperations } from './event-operations.ts'
import { fleetOperations } from './fleet-operations.ts'
import { historyOperations } from './history-operations.ts'
import { ingestOperations } from './ingest-operations.ts'
import { nodeOperations } from './node-operations.ts'
import { keyOperations } from './key-operations.ts'
import type { Operations } from './operation.ts'
import { serverOperations } from './server-operations.ts'
import { sessionOperations } from './session-operations.ts'
import { shardOperations } from './shard-operations.ts'
import { signingKeyOperations } from './signing-key-operations.ts'
import { tailOperations } from './tail-operations.ts'
import { webhookOperations } from './webhook-operations.ts'

/** Returns the operations of all routes, by verb and path. It makes all schemas anew. */
export function apiOperations(): Operations {
  return {
    ...ingestOperations(),
    ...tailOperations(),
    ...botOperations(),
    ...fleetOperations(),
    ...webhookOperations(),
    ...historyOperations(),
    ...deadLetterOperations(),
    ...signingKeyOperations(),
    ...eventOperations(),
    ...keyOperations(),
    ...serverOperations(),
    ...nodeOperations(),
    ...sessionOperations(),
    ...shardOperations(),
  }
}
