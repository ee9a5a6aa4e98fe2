import assert from 'node:assert/strict'
import { Socket } from 'node:net'
import { test } from 'node:test'
import { onceClosed } from '../../../src/http/once-closed.ts'

test('each watcher is called once when the connection closes, with one listener for all', () => {
  const socket = new Socket()
  const told: string[] = []
  for (const name of ['a', 'b', 'c']) onceClosed(socket, () => told.push(name))
  assert.equal(socket.listenerCount('close'), 1)
  socket.emit('close')
  socket.emit('close')
  assert.deepEqual(told, ['a', 'b', 'c'])
})

test('a watcher that was removed is not called, alone or among others', () => {
  const socket = new Socket()
  const told: string[] = []
  for (let index = 0; index < 3; index++) onceClosed(socket, () => told.push('alone'))()
  assert.equal(socket.listenerCount('close'), 1)
  onceClosed(socket, () => told.push('stays'))
  const unwatch = onceClosed(socket, () => told.push('among others'))
  unwatch()
  unwatch()
  socket.emit('close')
  assert.deepEqual(told, ['stays'])
})

test('a watcher may remove another one that was not called yet', () => {
  const socket = new Socket()
  const unwatch: (() => void)[] = []
  onceClosed(socket, () => unwatch[0]?.())
  unwatch.push(onceClosed(socket, () => assert.fail('it was taken off')))
  socket.emit('close')
})

test('on a closed connection a watcher is called immediately', () => {
  const socket = new Socket()
  socket.destroy()
  let times = 0
  onceClosed(socket, () => {
    times += 1
  })
  assert.equal(times, 1)
})
