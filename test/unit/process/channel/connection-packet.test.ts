import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  type ConnectionPacket,
  readConnectionPacket,
  writeConnectionPacket,
} from '../../../../src/process/channel/connection-packet.ts'
import { connectionPacketBytesMax } from '../../../../src/process/limits.ts'

const packets: ConnectionPacket[] = [
  { id: 1, listener: 'bot', clientAddress: '192.0.2.1', bytes: Buffer.from('GET /bot123:') },
  { id: 2 ** 31 - 1, listener: 'private', clientAddress: '', bytes: Buffer.alloc(0) },
  {
    id: 0,
    listener: 'private',
    clientAddress: '2001:db8::1%eth0',
    bytes: Buffer.alloc(70_000, 'x'),
  },
]

test('a packet is read as it was written, whatever follows it', () => {
  for (const packet of packets) {
    const bytes = Buffer.alloc(connectionPacketBytesMax, 0xff)
    const length = writeConnectionPacket(bytes, packet)
    const read = readConnectionPacket(bytes, length)
    bytes.fill(0)
    assert.deepEqual(read, packet)
  }
})

test('a packet that is too long, or from another build, is refused', () => {
  const target = Buffer.alloc(connectionPacketBytesMax)
  const bytes = Buffer.alloc(connectionPacketBytesMax)
  const [packet] = packets
  assert.throws(() => writeConnectionPacket(target, { ...packet!, bytes }), /too long/)
  assert.throws(
    () => writeConnectionPacket(target, { ...packet!, clientAddress: 'x'.repeat(256) }),
    /too long/,
  )
  assert.throws(() => readConnectionPacket(Buffer.alloc(8, 9), 8), /not of this build/)
  assert.throws(() => readConnectionPacket(Buffer.alloc(8), 5), /not of this build/)
})
