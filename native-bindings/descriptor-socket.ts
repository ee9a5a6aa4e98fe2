/** Typed wrapper of the native addon `descriptor_socket`. `descriptor_socket.c` documents its functions. */
import { loadAddon, withCode } from './load-addon.ts'

/** Creates two connected ends of a packet socket. Each packet carries one file descriptor. */
export function descriptorSocketPair(): readonly [number, number] {
  return withCode(() => loaded().socketPair())
}

/** Returns false if the socket buffer is full at the moment or the receiver is gone. */
export function sendDescriptor(end: number, descriptor: number, packet: Buffer): boolean {
  return withCode(() => loaded().sendDescriptor(end, descriptor, packet))
}

/**
 * Reads the next packet into `packet`, its descriptor into `result[0]` and its length into `result[1]`. The
 * descriptor is -1 if this process had no free descriptor.
 *
 * @returns false if no packet is waiting.
 */
export function receiveDescriptor(end: number, packet: Buffer, result: Int32Array): boolean {
  return withCode(() => loaded().receiveDescriptor(end, packet, result))
}

/**
 * From now on a listening TCP socket takes no new connection; their clients try again after a second, and are refused once the
 * socket is closed. Those that wait to be accepted can be accepted.
 *
 * @throws an error with a code if the system cannot do that
 */
export function takeNoMore(descriptor: number): void {
  withCode(() => loaded().takeNoMore(descriptor))
}

interface Addon {
  socketPair(): readonly [number, number]
  sendDescriptor(end: number, descriptor: number, packet: Buffer): boolean
  receiveDescriptor(end: number, packet: Buffer, result: Int32Array): boolean
  takeNoMore(descriptor: number): void
}

let addon: Addon | undefined

function loaded(): Addon {
  return (addon ??= loadAddon<Addon>('descriptor_socket'))
}
