import assert from 'node:assert/strict'
import { Socket } from 'node:net'
import { test } from 'node:test'
import { PushOrder } from '../../../src/private-api/push-order.ts'

test('a request that is prepared first waits only for those before it on the connection', async () => {
  const order = new PushOrder()
  const [one, other] = [new Socket(), new Socket()]
  const stored: string[] = []
  const store = (name: string): number => stored.push(name)
  let prepareFirst: (name: string) => void = assert.fail
  const slow = new Promise<string>((resolve) => (prepareFirst = resolve))
  const first = order.inOrder(one, slow, store)
  const second = order.inOrder(one, Promise.resolve('second'), store)
  await order.inOrder(other, Promise.resolve('other'), store)
  assert.deepEqual(stored, ['other'])
  prepareFirst('first')
  assert.deepEqual(await Promise.all([first, second]), [2, 3])
  assert.deepEqual(stored, ['other', 'first', 'second'])
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
    order.inOrder(socket, Promise.resolve(3), (value) => value),
  ])
  assert.deepEqual(
    outcomes.map(({ status }) => status),
    ['rejected', 'rejected', 'fulfilled'],
  )
})
