/** Typed wrapper of the native addon `send_datagram`. `send_datagram.c` documents its function. */
import { loadAddon, withCode } from './load-addon.ts'

/**
 * Sends one datagram to a Unix socket and never blocks.
 *
 * @param address - the path of the socket, or a zero byte and the name of an abstract socket.
 * @returns false if the receiver's queue is full at the moment.
 * @throws an error with a `code`, such as ENOENT or ECONNREFUSED if nobody listens.
 */
export function sendDatagram(address: Buffer, bytes: Buffer): boolean {
  return withCode(() => loaded().sendDatagram(address, bytes))
}

interface Addon {
  sendDatagram(address: Buffer, bytes: Buffer): boolean
}

let addon: Addon | undefined

function loaded(): Addon {
  return (addon ??= loadAddon<Addon>('send_datagram'))
}
