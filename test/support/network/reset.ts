import assert from 'node:assert/strict'
import type { Socket } from 'node:net'

/**
 * Resets a connection, as a client does that is killed. `Socket.resetAndDestroy` ends the stream before that, and a client that has
 * ended its side may wait for its response.
 */
export function reset(socket: Socket | null): void {
  assert(socket !== null, 'expected an open connection')
  const handle = Reflect.get(socket, '_handle') as { reset(closed: () => void): unknown }
  const failed = handle.reset(() => socket.destroy())
  assert.equal(failed, 0)
}
