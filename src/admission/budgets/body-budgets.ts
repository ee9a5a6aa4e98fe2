/**
 * The two budgets of a worker for bodies that it holds and cannot use yet (admission/budgets/body-budget.ts). This file decides who
 * the sender of a body is and what share each sender has; `limits.ts` has the sizes and their reasons.
 */
import type { IncomingMessage } from 'node:http'
import type { Counters } from '../../kit/surroundings.ts'
import { BodyBudget, type BodySender } from './body-budget.ts'
import { type Client, type ClientOf, keyAccount } from '../../http/client.ts'
import { requestOrigin } from '../../http/connection-origin.ts'
import type { ListenerKind } from '../../http/listener.ts'
import { mib } from '../../kit/limits.ts'

export type BodyBudgets = Readonly<Record<ListenerKind, BodyBudget<IncomingMessage>>>

/**
 * The bodies that a worker holds and cannot use yet may have this many bytes per listener: 16 of the largest size, or 64
 * with the most parameters. Past that a call gets 503.
 */
export const heldBodiesBytesMax = 64 * mib

export function bodyBudgets(
  counters: Pick<Counters, 'add'>,
  clientOf: ClientOf,
  onPieces?: (request: IncomingMessage, pieces: number) => void,
): BodyBudgets {
  const bytesMax = heldBodiesBytesMax
  return {
    bot: new BodyBudget({
      bytesMax,
      counters,
      senderOf: (request) => (isCountedHere(request) ? senderToBots(clientOf(request)) : undefined),
      ...(onPieces === undefined ? {} : { onPieces }),
    }),
    private: new BodyBudget({
      bytesMax,
      counters,
      senderOf: (request) => (isCountedHere(request) ? producer(clientOf(request)) : undefined),
    }),
  }
}

/**
 * One client address (an IPv6 /64 counts as one) may use this much of `heldBodiesBytesMax`: a quarter, so that three
 * addresses leave room for others.
 */
export const heldBodiesShareBytesMax = 16 * mib
/**
 * An address that may stand for many clients may use this much of `heldBodiesBytesMax`; the remaining quarter is for
 * addresses that are known. Many clients may share a Unix socket, or a private or loopback address without an X-Real-Ip,
 * as of a reverse proxy that does not report its clients. A forwarded body is counted only by the worker that read it
 * from its client, until the response is there. On the private listener this is the share of a key, and the admin key has none.
 */
export const heldBodiesSharedAddressBytesMax = 48 * mib

function senderToBots({ address, isShared }: Client): BodySender {
  const shareBytesMax = isShared ? heldBodiesSharedAddressBytesMax : heldBodiesShareBytesMax
  return { address, shareBytesMax }
}

/** Many producers may have one key. The admin key has no share. */
function producer({ holder }: Client): BodySender {
  return holder === undefined || holder === 'root'
    ? { address: 'producers', shareBytesMax: heldBodiesBytesMax }
    : { address: keyAccount(holder), shareBytesMax: heldBodiesSharedAddressBytesMax }
}

/** The body of a request that another worker forwarded is counted there. */
function isCountedHere(request: IncomingMessage): boolean {
  return requestOrigin(request)?.hops === 0
}
