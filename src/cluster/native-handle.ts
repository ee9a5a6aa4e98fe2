/**
 * The parts of Node's sockets that are not documented and that the hand-off stands on, in one place:
 * `_handle` (the native TCP or Pipe object) and `_httpMessage` (the answer that is being written).
 */
import type { Duplex } from 'node:stream'

export interface NativeHandle {
  readStop(): number
  readStart(): number
}

/** Undefined once the socket is closed. */
export function nativeHandleOf(socket: Duplex): NativeHandle | undefined {
  const handle: unknown = Reflect.get(socket, '_handle')
  return isNativeHandle(handle) ? handle : undefined
}

/** Whether the head of an answer has gone out on this connection and the answer is not finished. */
export function isAnswering(socket: Duplex): boolean {
  const message: unknown = Reflect.get(socket, '_httpMessage')
  return (
    typeof message === 'object' &&
    message !== null &&
    'headersSent' in message &&
    message.headersSent === true
  )
}

function isNativeHandle(handle: unknown): handle is NativeHandle {
  return (
    typeof handle === 'object' && handle !== null && 'readStop' in handle && 'readStart' in handle
  )
}
