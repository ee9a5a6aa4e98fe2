import assert from 'node:assert/strict'
import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { test } from 'node:test'
import { OpenResponses } from '../../../src/process/open-responses.ts'

function responseOn(socket: Socket): ServerResponse {
  return new ServerResponse(new IncomingMessage(socket))
}

test('the open responses are those of all connections that are left, in whatever order they close', async () => {
  const open = new OpenResponses()
  const sockets = Array.from({ length: 4 }, () => new Socket())
  const [first, second, third, last] = sockets.map((socket) => {
    const response = responseOn(socket)
    open.track(response)
    return response
  })
  const idle = open.idle()
  for (const [closed, left] of [
    [1, [first, last, third]],
    [3, [first, third]],
    [3, [first, third]],
    [0, [third]],
  ] as const) {
    open.forgetAll(sockets[closed]!)
    assert.deepEqual([...open], left)
    assert.equal(open.count, left.length)
  }
  assert(second !== undefined && third !== undefined)
  third.emit('finish')
  assert.equal(open.count, 0)
  await idle
})

test('a connection that was never asked for anything may close', () => {
  const open = new OpenResponses()
  const asked = new Socket()
  open.track(responseOn(asked))
  open.forgetAll(new Socket())
  assert.equal(open.count, 1)
})
