/**
 * Tells when a client's connection closes, with one listener a socket however many requests are on it.
 *
 * A response says so only while it is the one being written: a pipelined one behind it hears nothing when
 * the connection breaks.
 */
import type { Socket } from 'node:net'

const watchersOf = Symbol('close watchers')

/** One alone, as almost always, needs no set: thousands of polls wait at a time. */
type Watchers = Set<() => void> | (() => void) | undefined

interface WatchedSocket extends Socket {
  [watchersOf]?: Watchers
}

/** Calls `closed` once when the socket closes, at once where it has; the result stops that. */
export function onceClosed(socket: Socket, closed: () => void): () => void {
  if (socket.destroyed) {
    closed()
    return () => undefined
  }
  const watched = socket as WatchedSocket
  if (!(watchersOf in watched)) watched.once('close', tellAll)
  const before = watched[watchersOf]
  if (before === undefined) watched[watchersOf] = closed
  else if (typeof before === 'function') watched[watchersOf] = new Set([before, closed])
  else before.add(closed)
  return () => forget(watched, closed)
}

function forget(socket: WatchedSocket, closed: () => void): void {
  const watchers = socket[watchersOf]
  if (watchers === closed) socket[watchersOf] = undefined
  else if (typeof watchers === 'object') watchers.delete(closed)
}

function tellAll(this: WatchedSocket): void {
  const watchers = this[watchersOf]
  if (typeof watchers === 'function') watchers()
  // One that is told may take off another.
  else for (const closed of watchers ?? []) closed()
  this[watchersOf] = undefined
}
