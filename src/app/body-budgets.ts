/**
 * The two budgets of a worker for bodies that it holds and cannot use yet (http/body-budget.ts). This file decides who
 * the sender of a body is and what share each sender has; `limits.ts` has the sizes and their reasons.
 */
import type { IncomingMessage } from 'node:http'
import type { Counters } from '../counters.ts'
import { BodyBudget, type BodySender } from '../http/body-budget.ts'
import { clientAddress, isShared } from '../http/client-address.ts'
import {
  heldBodiesBytesMax,
  heldBodiesSharedAddressBytesMax,
  heldBodiesShareBytesMax,
} from './limits.ts'
import { requestOrigin } from '../cluster/connection/connection-origin.ts'
import type { ListenerKind } from '../cluster/listener.ts'

export type BodyBudgets = Readonly<Record<ListenerKind, BodyBudget<IncomingMessage>>>

export function bodyBudgets(
  counters: Counters,
  holderOf: (request: IncomingMessage) => string | undefined,
  onPieces?: (request: IncomingMessage, pieces: number) => void,
): BodyBudgets {
  const bytesMax = heldBodiesBytesMax
  return {
    bot: new BodyBudget({
      bytesMax,
      counters,
      senderOf: senderToBots,
      ...(onPieces === undefined ? {} : { onPieces }),
    }),
    private: new BodyBudget({
      bytesMax,
      counters,
      senderOf: (request) => producer(request, holderOf(request)),
    }),
  }
}

function senderToBots(request: IncomingMessage): BodySender | undefined {
  const socketAddress = addressOfClient(request)
  if (socketAddress === undefined) return undefined
  const realIp = request.headers['x-real-ip']
  return {
    address: clientAddress(socketAddress, realIp),
    shareBytesMax: isShared(socketAddress, realIp)
      ? heldBodiesSharedAddressBytesMax
      : heldBodiesShareBytesMax,
  }
}

/** Many producers may have one key. The admin key has no share. */
function producer(request: IncomingMessage, holder: string | undefined): BodySender | undefined {
  if (addressOfClient(request) === undefined) return undefined
  return holder === undefined || holder === 'root'
    ? { address: 'producers', shareBytesMax: heldBodiesBytesMax }
    : { address: `key ${holder}`, shareBytesMax: heldBodiesSharedAddressBytesMax }
}

/** Returns undefined for a request that another worker forwarded: that worker counts the body. */
function addressOfClient(request: IncomingMessage): string | undefined {
  const origin = requestOrigin(request)
  return origin === undefined || origin.hops > 0 ? undefined : origin.clientAddress
}
