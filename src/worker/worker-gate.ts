/** The budget gate of a worker: who a request belongs to, and how one is refused that exceeds its budget. */
import { botIdOfTarget } from '../http/target.ts'
import { refusePrivate, sendError } from '../http/reply.ts'
import { type Clock, processCpuMs } from '../kit/clock.ts'
import { requestOrigin } from '../http/connection-origin.ts'
import { hasBody } from '../http/body.ts'
import { BudgetGate } from '../admission/budgets/budget-gate.ts'
import type { ClientOf } from '../http/client.ts'
import type { CallTable } from '../api/call-table.ts'

/** Returns the gate before both APIs. */
export function workerGate(clock: Clock, clientOf: ClientOf, calls: CallTable): BudgetGate {
  return new BudgetGate({
    clock,
    cpuMs: processCpuMs,
    clientOf,
    // A call of the owner's page names no bot until its link is known: modules/portal-api.ts.
    botIdOf: ({ url = '/' }) => botIdOfTarget(url),
    isTrusted: (request) =>
      calls.madeBy(request)?.scope === 'open' || clientOf(request).holder !== undefined,
    refuse: (response, error) => {
      if (requestOrigin(response.req)?.listener !== 'private') {
        sendError(response, error, { close: hasBody(response.req) })
        return
      }
      refusePrivate(response, error)
    },
  })
}
