import assert from 'node:assert/strict'
import { closeSync, fstatSync, openSync, readFileSync, readSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import {
  receiveDescriptor,
  sendDescriptor,
  descriptorSocketPair,
} from '../../../native-bindings/descriptor-socket.ts'
import { temporaryDirectory } from '../../support/kit/temporary-directory.ts'

function setUp(t: TestContext) {
  const path = join(temporaryDirectory(t), 'file')
  writeFileSync(path, 'content')
  const file = openSync(path, 'r')
  const [from, to] = descriptorSocketPair()
  const open = new Set([file, from, to])
  t.after(() => open.forEach((each) => closeSync(each)))
  const buffer = Buffer.alloc(100)
  const result = new Int32Array(2)
  return {
    file,
    from,
    to,
    receive: () =>
      receiveDescriptor(to, buffer, result)
        ? { fd: result[0] ?? -1, text: buffer.toString('latin1', 0, result[1]) }
        : undefined,
    close: (end: number) => {
      open.delete(end)
      closeSync(end)
    },
  }
}

test('a descriptor arrives with its packet, whole and in order, and is closed at exec', (t) => {
  const { file, from, receive } = setUp(t)
  assert.equal(receive(), undefined)
  for (const text of ['one', 'two', 'three']) {
    assert.equal(sendDescriptor(from, file, Buffer.from(text)), true)
  }
  for (const text of ['one', 'two', 'three']) {
    const received = receive()
    assert.equal(received?.text, text)
    const { fd } = received
    assert.notEqual(fd, file)
    assert.equal(fstatSync(fd).ino, fstatSync(file).ino)
    assert.match(readFileSync(`/proc/self/fdinfo/${fd}`, 'utf8'), /^flags:\s+0?2\d{6}$/m)
    closeSync(fd)
  }
  assert.equal(receive(), undefined)
})

test('a sent descriptor stays open when the sender closes its own', (t) => {
  const { file, from, receive, close } = setUp(t)
  sendDescriptor(from, file, Buffer.from('x'))
  close(file)
  const { fd } = receive() ?? { fd: -1 }
  const bytes = Buffer.alloc(7)
  readSync(fd, bytes)
  assert.equal(bytes.toString(), 'content')
  closeSync(fd)
})

test('a full socket accepts nothing more, and accepts again when there is room', (t) => {
  const { file, from, receive } = setUp(t)
  const packet = Buffer.alloc(90, 'x')
  let sent = 0
  while (sendDescriptor(from, file, packet)) sent += 1
  assert.ok(sent >= 64, `only ${sent} fit`)
  for (let nth = 0; nth < sent; nth++) closeSync(receive()?.fd ?? -1)
  assert.equal(receive(), undefined)
  assert.equal(sendDescriptor(from, file, packet), true)
  closeSync(receive()?.fd ?? -1)
})

test('without a receiver nothing is sent, and without a sender nothing arrives', (t) => {
  const { file, from, to, receive, close } = setUp(t)
  close(from)
  assert.equal(receive(), undefined)
  const [other, gone] = descriptorSocketPair()
  close(gone)
  assert.equal(sendDescriptor(other, file, Buffer.from('x')), false)
  closeSync(other)
  assert.throws(() => sendDescriptor(to, 9_999, Buffer.from('x')), { code: 'EBADF' })
})

test('a packet longer than the buffer is an error and leaks no descriptor', (t) => {
  const { file, from, receive } = setUp(t)
  const before = openDescriptors()
  sendDescriptor(from, file, Buffer.alloc(200))
  assert.throws(receive, { code: 'EMSGSIZE' })
  assert.equal(openDescriptors(), before)
})

test('wrong arguments are refused', (t) => {
  const { file, from } = setUp(t)
  assert.throws(() => sendDescriptor(from, file, Buffer.alloc(0)), TypeError)
  assert.throws(() => receiveDescriptor(from, Buffer.alloc(9), new Int32Array(1)), TypeError)
})

function openDescriptors(): number {
  let count = 0
  for (let fd = 0; fd < 1_024; fd++) {
    try {
      fstatSync(fd)
      count += 1
    } catch {
      // Not open.
    }
  }
  return count
}
