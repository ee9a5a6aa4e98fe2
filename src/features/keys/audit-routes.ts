/** GET /v1/audit: the calls that record-calls.ts has recorded. The worker that has shard 0 answers, whichever worker got the request. */
import type { FastifyInstance } from 'fastify'
import type { WorkerKeys } from '../../access/worker-keys.ts'
import type { ResultOf } from '../../api/operation.ts'
import { addOperations } from '../../private-api/add-operations.ts'
import type { RecordedCall } from '../../shard/records/audit-record.ts'
import { auditOperations } from './audit-operations.ts'

interface Options {
  readonly keys: Pick<WorkerKeys, 'audit'>
}

export function addAuditRoutes(app: FastifyInstance, { keys }: Options): void {
  addOperations(app, auditOperations, {
    async listAudit({ query, request }) {
      const { since, until, bot: botId, ...wanted } = query
      const question = {
        ...wanted,
        sinceMs: since === undefined ? undefined : since * 1_000,
        untilMs: until === undefined ? undefined : until * 1_000,
        botId,
      }
      const calls = await keys.audit.trail.read(question, request.payer)
      return { calls: calls.map((call) => callJson(call)) }
    },
  })
}

function callJson({
  id,
  record,
}: RecordedCall): ResultOf<typeof auditOperations.listAudit>['calls'][number] {
  return {
    id,
    time: record.timeMs / 1_000,
    key_id: record.key?.id ?? null,
    key_name: record.key?.name ?? null,
    operation: record.operation,
    call: record.call,
    bot_id: record.botId ?? null,
    username: record.username,
    bot_ids: record.botIds ?? [],
    test: record.isTest ?? false,
    on_key: record.onKey ?? null,
    changes: record.changes ?? [],
    result: record.result,
    request_id: record.requestId,
  }
}
