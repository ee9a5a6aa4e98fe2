/**
 * Notifies watchers when a client's connection closes, with one listener per socket however many requests it has. A watcher
 * may also learn that the connection will end soon, so that nothing should wait for an event any longer.
 *
 * A response emits 'close' only while it is being written: a pipelined one that waits gets no event when the connection
 * breaks.
 */
import type { Socket } from 'node:net'

const watchersOf = Symbol('close watchers')
const hurriedMark = Symbol('hurried')

/** Notified once. It is an object and not a function, so that thousands of polls need no closure each. */
export interface CloseWatcher {
  closed(): void
  /** The connection ends with the responses to its requests: a call that waits for an event gets its response now. */
  hurried?(): void
}

/** A single watcher, as almost always, needs no set. */
type Watchers = Set<CloseWatcher> | CloseWatcher | undefined

interface WatchedSocket extends Socket {
  [watchersOf]?: Watchers
  [hurriedMark]?: true
}

/** Notifies `watcher` when the socket closes, or immediately if it has closed already; `unwatchClose` cancels that. */
export function watchClose(socket: Socket, watcher: CloseWatcher): void {
  if (socket.destroyed) {
    watcher.closed()
    return
  }
  const watched = socket as WatchedSocket
  // The listener stays: the connection's next request is watched, too.
  if (!(watchersOf in watched)) watched.on('close', tellAll)
  const before = watched[watchersOf]
  if (before === undefined) watched[watchersOf] = watcher
  else if (before instanceof Set) before.add(watcher)
  else watched[watchersOf] = new Set([before, watcher])
  if (watched[hurriedMark] === true) watcher.hurried?.()
}

/** Hurries the watchers of the socket, and those to come. */
export function hurry(socket: Socket): void {
  const watched = socket as WatchedSocket
  watched[hurriedMark] = true
  tellEach(watched, (watcher) => watcher.hurried?.())
}

export function unwatchClose(socket: Socket, watcher: CloseWatcher): void {
  const watched = socket as WatchedSocket
  const watchers = watched[watchersOf]
  if (watchers === watcher) watched[watchersOf] = undefined
  else if (watchers instanceof Set) watchers.delete(watcher)
}

/**
 * Calls `closed` once when the socket closes, or immediately if it has closed already, and `hurried` if nothing should wait
 * any longer; the returned function cancels that.
 */
export function onceClosed(
  socket: Socket,
  closed: () => void,
  hurried: () => void = nothing,
): () => void {
  const watcher = { closed, hurried }
  watchClose(socket, watcher)
  return () => unwatchClose(socket, watcher)
}

function tellAll(this: WatchedSocket): void {
  tellEach(this, (watcher) => watcher.closed())
  this[watchersOf] = undefined
}

function tellEach(socket: WatchedSocket, tell: (watcher: CloseWatcher) => void): void {
  const watchers = socket[watchersOf]
  // A watcher may remove another one during this loop.
  if (watchers instanceof Set) for (const watcher of watchers) tell(watcher)
  else if (watchers !== undefined) tell(watchers)
}

function nothing(): void {
  // Most that watch wait for no event.
}
