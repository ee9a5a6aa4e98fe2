import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import { Socket } from 'node:net'
import { test } from 'node:test'
import type { PushReceipt } from '../../../../src/bots/push-receipt.ts'
import { PushOrder } from '../../../../src/features/ingest/push-order.ts'
import { settle } from '../../../support/kit/fake-clock.ts'

function receipt(id: number): PushReceipt {
  return { accepted: Promise.resolve(new Set()), results: Promise.resolve([id]) }
}

test('a request that is prepared first waits only for those before it on the connection', async () => {
  const order = new PushOrder()
  const [one, other] = [new Socket(), new Socket()]
  const stored: string[] = []
  const store = (name: string): PushReceipt => receipt(stored.push(name))
  let prepareFirst: (name: string) => void = assert.fail
  const slow = new Promise<string>((resolve) => (prepareFirst = resolve))
  const first = order.inOrder(one, slow, store)
  const second = order.inOrder(one, Promise.resolve('second'), store)
  await order.inOrder(other, Promise.resolve('other'), store)
  assert.deepEqual(stored, ['other'])
  prepareFirst('first')
  assert.deepEqual(await Promise.all([first, second]), [[2], [3]])
  assert.deepEqual(stored, ['other', 'first', 'second'])
})

test('a push waits for the ids of the one before, which may read its key, and not for its write', async () => {
  const order = new PushOrder()
  const socket = new Socket()
  const stored: string[] = []
  const gate = new EventEmitter()
  const accepted = new Promise<ReadonlySet<number>>((resolve) => gate.once('accept', resolve))
  void order.inOrder(socket, Promise.resolve('keyed'), (name) => {
    stored.push(name)
    return { accepted, results: new Promise(() => undefined) }
  })
  const second = order.inOrder(socket, Promise.resolve('plain'), (name) =>
    receipt(stored.push(name)),
  )
  await settle()
  assert.deepEqual(stored, ['keyed'])
  gate.emit('accept', new Set())
  assert.deepEqual(await second, [2])
})

const fail = (): never => {
  throw new Error('not stored')
}

test('a failed request delays none after it, whether it fails before its turn or in it', async () => {
  const order = new PushOrder()
  const socket = new Socket()
  const outcomes = await Promise.allSettled([
    order.inOrder(socket, Promise.resolve(1), fail),
    order.inOrder(socket, Promise.reject(new Error('not read')), fail),
    order.inOrder(socket, Promise.resolve(3), receipt),
  ])
  assert.deepEqual(
    outcomes.map(({ status }) => status),
    ['rejected', 'rejected', 'fulfilled'],
  )
})
