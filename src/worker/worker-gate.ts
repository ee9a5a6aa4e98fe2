/** The budget gate of a worker: who a request belongs to, and how one is refused that exceeds its budget. */
import type { IncomingMessage } from 'node:http'
import { refusePrivate } from '../http/private-error.ts'
import type { PrivateApiGuard } from '../access/private-api-guard.ts'
import { botIdOfTarget } from '../http/target.ts'
import { sendError } from '../http/reply.ts'
import { type Clock, processCpuMs } from '../kit/clock.ts'
import { requestOrigin } from '../http/connection-origin.ts'
import { hasBody } from '../http/body.ts'
import { BudgetGate } from '../admission/budgets/budget-gate.ts'
import { clientAddress } from '../http/client-address.ts'
import type { CallTable } from '../api/call-table.ts'

export function clientAddressOf(request: IncomingMessage): string {
  return clientAddress(requestOrigin(request)?.clientAddress ?? '', request.headers['x-real-ip'])
}

/** Returns the gate before both APIs. */
export function workerGate(clock: Clock, guard: PrivateApiGuard, calls: CallTable): BudgetGate {
  return new BudgetGate({
    clock,
    cpuMs: processCpuMs,
    clientAddressOf,
    // A call of the owner's page names no bot until its link is known: modules/portal-api.ts.
    botIdOf: ({ url = '/' }) => botIdOfTarget(url),
    holderOf: (request) =>
      requestOrigin(request)?.listener === 'private' ? guard.holderOf(request) : undefined,
    isTrusted: (request) =>
      calls.madeBy(request)?.scope === 'open' || guard.holderOf(request) !== undefined,
    refuse: (response, error) => {
      if (requestOrigin(response.req)?.listener !== 'private') {
        sendError(response, error, { close: hasBody(response.req) })
        return
      }
      refusePrivate(response, error)
    },
  })
}
