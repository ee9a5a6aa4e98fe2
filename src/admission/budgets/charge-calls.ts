/**
 * Charges the calls of the private API and of the owner's page to the loop budget of who makes them (admission/budgets/budget-gate.ts): links to
 * that of their bot, as its own calls are, and keys to their own. A call with the admin key begins at once whatever it owes: a pause
 * or a scrape of the metrics must not wait for a search. The parts of its long calls wait like those of others.
 *
 *     link or key is valid --> over its budget? waits --> handler ...................... --> JSON --> response
 *                                                         [ what is done in one turn of the event loop is charged ]
 *
 * Most handlers end in the turn in which they begin. Of one that takes longer, the turn in which it ends is measured from its result
 * on, or from `measureRest`, and a handler that reads many records charges each part by itself: it has `request.payer`. Pushes
 * have limits of their own.
 */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Clock } from '../../kit/clock.ts'
import type { LoopPayer } from '../../http/loop-payer.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** Undefined for a call that is not charged. */
    payer: LoopPayer | undefined
    /** When the measured part of this turn began; undefined if none is measured now. */
    measuredSince: number | undefined
  }
}

/** Gives all requests of an app a field for their payer, and charges what those with one have cost. */
export function chargeCalls(app: FastifyInstance): void {
  app.decorateRequest('payer', undefined)
  app.decorateRequest('measuredSince', undefined)
  // These are no promises, so nothing else runs between them: what is measured is the JSON of the result.
  app.addHook('preSerialization', (request, _reply, _payload, done) => {
    measureRest(request)
    done()
  })
  app.addHook('onSend', (request, _reply, _payload, done) => {
    if (request.measuredSince !== undefined) request.payer?.spent(request.measuredSince)
    request.measuredSince = undefined
    done()
  })
}

/** Call this when a handler goes on with much to do in the turn in which it ends. */
export function measureRest(request: FastifyRequest): void {
  request.measuredSince ??= request.payer?.begin()
}

/** Resolves when the handler of a call may run. Returns whether the call had to wait. Rejects with TOO_MANY_REQUESTS. */
export async function payForCall(
  request: FastifyRequest,
  clock: Pick<Clock, 'soon'>,
): Promise<boolean> {
  const { access, payer } = request
  if (payer === undefined) return false
  const turn = access === 'root' ? undefined : payer.turn()
  if (turn !== undefined) await turn
  request.measuredSince = payer.begin()
  clock.soon(() => (request.measuredSince = undefined))
  return turn !== undefined
}
