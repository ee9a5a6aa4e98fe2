/** The typed door to the addon descriptor_socket (descriptor_socket.c says what its functions do). */
import { loadAddon, withCode } from './load-addon.ts'

/** Two connected ends for whole packets, each with a descriptor beside it. */
export function descriptorSocketPair(): readonly [number, number] {
  return withCode(() => loaded().socketPair())
}

/** False where there is no room at the moment, or no receiver any more. */
export function sendDescriptor(end: number, descriptor: number, packet: Buffer): boolean {
  return withCode(() => loaded().sendDescriptor(end, descriptor, packet))
}

/**
 * Puts the next packet into `packet`, its descriptor into `result[0]` (-1 where this process has none free) and its
 * length into `result[1]`; false where there is none.
 */
export function receiveDescriptor(end: number, packet: Buffer, result: Int32Array): boolean {
  return withCode(() => loaded().receiveDescriptor(end, packet, result))
}

interface Addon {
  socketPair(): readonly [number, number]
  sendDescriptor(end: number, descriptor: number, packet: Buffer): boolean
  receiveDescriptor(end: number, packet: Buffer, result: Int32Array): boolean
}

let addon: Addon | undefined

function loaded(): Addon {
  return (addon ??= loadAddon<Addon>('descriptor_socket'))
}
