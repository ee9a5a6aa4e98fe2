/** The budget gate of a worker: who a request belongs to, and how one is refused that exceeds its budget. */
import type { IncomingMessage } from 'node:http'
import { asksForHealth } from '../private-api/private-api.ts'
import { privateErrorText } from '../private-api/private-error.ts'
import type { PrivateApiGuard } from '../private-api/private-api-guard.ts'
import { botIdOfTarget } from '../bot-api/target.ts'
import { sendError } from '../bot-api/reply.ts'
import { type Clock, processCpuMs } from '../clock.ts'
import { requestOrigin } from '../cluster/connection/connection-origin.ts'
import { hasBody } from '../http/body.ts'
import { BudgetGate } from '../http/budget-gate.ts'
import { clientAddress } from '../http/client-address.ts'

export function clientAddressOf(request: IncomingMessage): string {
  return clientAddress(requestOrigin(request)?.clientAddress ?? '', request.headers['x-real-ip'])
}

/** Returns the gate before both APIs. */
export function workerGate(clock: Clock, guard: PrivateApiGuard): BudgetGate {
  return new BudgetGate({
    clock,
    cpuMs: processCpuMs,
    clientAddressOf,
    botIdOf: ({ url = '/' }) => botIdOfTarget(url),
    isTrusted: (request) => asksForHealth(request.url ?? '/') || guard.isKnown(request),
    refuse: (response, error) => {
      if (requestOrigin(response.req)?.listener !== 'private') {
        sendError(response, error, { close: hasBody(response.req) })
        return
      }
      const text = privateErrorText(error)
      const headers = ['Content-Type', 'application/json', 'Content-Length', `${text.length}`]
      const retryAfter = ['Retry-After', `${error.retryAfterS ?? 1}`]
      response.writeHead(error.status, [...headers, ...retryAfter, 'Connection', 'close'])
      response.end(text)
    },
  })
}
