import assert from 'node:assert/strict'
import { closeSync, openSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { sendDatagram } from '../../../native-bindings/send-datagram.ts'
import { NotifySocket } from '../../support/kit/notify-socket.ts'
import { temporaryDirectory } from '../../support/kit/temporary-directory.ts'
import { until } from '../../support/kit/until.ts'

test('datagrams arrive whole and in order, at a path and at an abstract name', async (t) => {
  const path = join(temporaryDirectory(t), 'socket')
  const name = `postbote-test-${process.pid}`
  for (const [given, address] of [
    [path, Buffer.from(path)],
    [`@${name}`, Buffer.from(`\0${name}`)],
  ] as const) {
    const socket = await NotifySocket.start(t, given)
    assert.equal(sendDatagram(address, Buffer.from('one\ntwo')), true)
    assert.equal(sendDatagram(address, Buffer.from('three')), true)
    await until(() => socket.notices.length === 2)
    assert.deepEqual(socket.notices, ['one\ntwo', 'three'])
  }
})

test('a full queue takes nothing more and does not block', async (t) => {
  const path = join(temporaryDirectory(t), 'socket')
  const socket = await NotifySocket.start(t, path)
  socket.pause()
  const send = (): boolean => sendDatagram(Buffer.from(path), Buffer.from('x'))
  let sent = 0
  while (sent < 100_000 && send()) sent += 1
  assert(sent < 100_000)
  socket.resume()
  await until(send)
  await until(() => socket.notices.length === sent + 1)
})

test('an address without a listener, or one that is too long, is an error with a code', (t) => {
  const missing = Buffer.from(join(temporaryDirectory(t), 'socket'))
  assert.throws(() => sendDatagram(missing, Buffer.from('x')), { code: 'ENOENT' })
  assert.throws(() => sendDatagram(Buffer.alloc(109, 'x'), Buffer.from('x')), {
    code: 'ENAMETOOLONG',
  })
})

test('a datagram leaves no descriptor open, and wrong arguments are refused', (t) => {
  const missing = Buffer.from(join(temporaryDirectory(t), 'socket'))
  const before = nextDescriptor()
  for (let nth = 0; nth < 3; nth++) {
    assert.throws(() => sendDatagram(missing, Buffer.from('x')), { code: 'ENOENT' })
  }
  assert.equal(nextDescriptor(), before)
  assert.throws(() => sendDatagram(missing, Buffer.alloc(0)), TypeError)
  assert.throws(() => sendDatagram(Buffer.alloc(0), Buffer.from('x')), TypeError)
})

/** The lowest number of a descriptor that is free. */
function nextDescriptor(): number {
  const descriptor = openSync('/dev/null', 'r')
  closeSync(descriptor)
  return descriptor
}
