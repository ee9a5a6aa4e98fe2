/**
 * Tells when a client's connection closes, with one listener a socket however many requests are on it.
 *
 * A response says so only while it is the one being written: a pipelined one behind it hears nothing when
 * the connection breaks.
 */
import type { Socket } from 'node:net'

const watchersOf = Symbol('close watchers')

interface WatchedSocket extends Socket {
  [watchersOf]?: Set<() => void>
}

/** Calls `closed` once when the socket closes, at once where it has; the result stops that. */
export function onceClosed(socket: Socket, closed: () => void): () => void {
  if (socket.destroyed) {
    closed()
    return () => undefined
  }
  const watched = socket as WatchedSocket
  const watchers = (watched[watchersOf] ??= watch(watched))
  watchers.add(closed)
  return () => void watchers.delete(closed)
}

function watch(socket: WatchedSocket): Set<() => void> {
  const watchers = new Set<() => void>()
  socket.once('close', () => {
    for (const closed of watchers) closed()
    watchers.clear()
  })
  return watchers
}
