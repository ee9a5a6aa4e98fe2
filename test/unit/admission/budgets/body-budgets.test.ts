import assert from 'node:assert/strict'
import type { IncomingMessage } from 'node:http'
import { test } from 'node:test'
import {
  bodyBudgets,
  heldBodiesBytesMax,
  heldBodiesShareBytesMax,
  heldBodiesSharedAddressBytesMax,
} from '../../../../src/admission/budgets/body-budgets.ts'
import { clientsBy } from '../../../../src/http/client.ts'
import { markConnection, setOrigin, takeOrigin } from '../../../../src/http/connection-origin.ts'
import type { ListenerKind } from '../../../../src/http/listener.ts'

interface Sender {
  readonly clientAddress: string
  readonly realIp?: string
  readonly isFromPeer?: boolean
  readonly holder?: string
}

function requestOf(listener: ListenerKind, sender: Sender): IncomingMessage {
  const { clientAddress, realIp, isFromPeer = false } = sender
  const headers = realIp === undefined ? {} : { 'x-real-ip': realIp }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- only these fields are used
  const request = { headers, rawHeaders: [], socket: {} } as unknown as IncomingMessage
  if (isFromPeer) setOrigin(request, { listener, clientAddress, hops: 1 })
  else {
    markConnection(request.socket, { listener, clientAddress })
    takeOrigin(request, listener)
  }
  return request
}

/** Returns the most bytes that this sender may hold alone. */
function mostOf(listener: ListenerKind, sender: Sender): number {
  const budget = bodyBudgets(
    { add: () => undefined },
    clientsBy(() => sender.holder),
  )[listener]
  const reservation = budget.reservationFor(requestOf(listener, sender))
  const sizes = [
    heldBodiesShareBytesMax,
    heldBodiesSharedAddressBytesMax,
    heldBodiesBytesMax,
    Infinity,
  ]
  return Math.max(...sizes.filter((bytes) => reservation.hold(bytes)))
}

test('one client has a small share, many clients behind one address a larger one, a key as well, and the admin key everything', () => {
  assert.equal(mostOf('bot', { clientAddress: '1.2.3.4' }), heldBodiesShareBytesMax)
  const behind = { clientAddress: '127.0.0.1', realIp: '1.2.3.4' }
  assert.equal(mostOf('bot', behind), heldBodiesShareBytesMax)
  for (const clientAddress of ['127.0.0.1', '10.0.0.1', '']) {
    assert.equal(mostOf('bot', { clientAddress }), heldBodiesSharedAddressBytesMax, clientAddress)
    assert.equal(mostOf('private', { clientAddress, holder: 'root' }), heldBodiesBytesMax)
    const ofKey = { clientAddress, holder: '0123456789abcdef' }
    assert.equal(mostOf('private', ofKey), heldBodiesSharedAddressBytesMax, clientAddress)
  }
})

test('a body that another worker forwards is counted there and not here', () => {
  for (const listener of ['bot', 'private'] as const) {
    assert.equal(mostOf(listener, { clientAddress: '1.2.3.4', isFromPeer: true }), Infinity)
  }
})

test('two clients of one IPv6 /64 have one share', () => {
  const { bot } = bodyBudgets(
    { add: () => undefined },
    clientsBy(() => undefined),
  )
  const [first, second, other] = ['2a00::1', '2a00::2', '2a00:0:0:1::1'].map((clientAddress) =>
    bot.reservationFor(requestOf('bot', { clientAddress })),
  )
  assert(first!.hold(heldBodiesShareBytesMax))
  assert.equal(second!.hold(100_000), false)
  assert(other!.hold(100_000))
})
