/**
 * The packet that accompanies the descriptor of a handed-off connection (native-bindings/descriptor_socket.c).
 *
 *     0  id                 4 bytes LE
 *     4  listener           1 byte: its index in listenerKinds
 *     5  address length     1 byte
 *     6  client address     latin1
 *        first bytes        the rest
 *
 * Both ends are of one build, so the packet has no version. An object sent over the process channel would cost each
 * process several times as much as this packet.
 */
import assert from 'node:assert/strict'
import { connectionPacketBytesMax } from '../limits.ts'
import { type ListenerKind, listenerKinds } from '../../http/listener.ts'

export interface ConnectionPacket {
  readonly id: number
  readonly listener: ListenerKind
  /** Empty for a client of a Unix socket. */
  readonly clientAddress: string
  /** The bytes that were read from the connection so far. */
  readonly bytes: Buffer
}

const headBytes = 6

/** Writes the packet to the beginning of `target` and returns its length in bytes. */
export function writeConnectionPacket(target: Buffer, packet: ConnectionPacket): number {
  const { id, listener, clientAddress, bytes } = packet
  const length = headBytes + clientAddress.length + bytes.length
  assert(length <= connectionPacketBytesMax && clientAddress.length <= 255, 'a packet is too long')
  target.writeInt32LE(id, 0)
  target[4] = listenerKinds.indexOf(listener)
  target[5] = clientAddress.length
  target.write(clientAddress, headBytes, 'latin1')
  bytes.copy(target, headBytes + clientAddress.length)
  return length
}

/** Reads the packet in the first `length` bytes of `source`. The result is a copy: `source` may be reused. */
export function readConnectionPacket(source: Buffer, length: number): ConnectionPacket {
  const listener = listenerKinds[source[4] ?? -1]
  const bytesFrom = headBytes + (source[5] ?? 0)
  assert(length >= headBytes && listener !== undefined, 'a packet is not of this build')
  return {
    id: source.readInt32LE(0),
    listener,
    clientAddress: source.toString('latin1', headBytes, bytesFrom),
    bytes: Buffer.from(source.subarray(bytesFrom, length)),
  }
}
