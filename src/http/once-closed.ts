/**
 * Tells when a client's connection closes, with one listener a socket however many requests are on it.
 *
 * A response says so only while it is the one being written: a pipelined one behind it hears nothing when
 * the connection breaks.
 */
import type { Socket } from 'node:net'

const watchersOf = Symbol('close watchers')

/** Is told once; an object and no function, so that nothing but it need be made for each of thousands of polls. */
export interface CloseWatcher {
  closed(): void
}

/** One alone, as almost always, needs no set. */
type Watchers = Set<CloseWatcher> | CloseWatcher | undefined

interface WatchedSocket extends Socket {
  [watchersOf]?: Watchers
}

/** Tells `watcher` when the socket closes, at once where it has, until `unwatchClose`. */
export function watchClose(socket: Socket, watcher: CloseWatcher): void {
  if (socket.destroyed) {
    watcher.closed()
    return
  }
  const watched = socket as WatchedSocket
  // It stays: the connection's next request is watched too.
  if (!(watchersOf in watched)) watched.on('close', tellAll)
  const before = watched[watchersOf]
  if (before === undefined) watched[watchersOf] = watcher
  else if (before instanceof Set) before.add(watcher)
  else watched[watchersOf] = new Set([before, watcher])
}

export function unwatchClose(socket: Socket, watcher: CloseWatcher): void {
  const watched = socket as WatchedSocket
  const watchers = watched[watchersOf]
  if (watchers === watcher) watched[watchersOf] = undefined
  else if (watchers instanceof Set) watchers.delete(watcher)
}

/** Calls `closed` once when the socket closes, at once where it has; the result stops that. */
export function onceClosed(socket: Socket, closed: () => void): () => void {
  const watcher = { closed }
  watchClose(socket, watcher)
  return () => unwatchClose(socket, watcher)
}

function tellAll(this: WatchedSocket): void {
  const watchers = this[watchersOf]
  // One that is told may take off another.
  if (watchers instanceof Set) for (const watcher of watchers) watcher.closed()
  else watchers?.closed()
  this[watchersOf] = undefined
}
