/**
 * Stops reading from a connection while anybody holds it. A pause alone does not last: node:http resumes the socket after each
 * request and while it reads a body, so `resume` does nothing meanwhile. A `resume` from before the pause may still take
 * effect after it. The listener here runs after the one of node:http that reads on then.
 */
import assert from 'node:assert/strict'
import type { Socket } from 'node:net'

const holdersOn = Symbol('holders')

interface HeldSocket extends Socket {
  [holdersOn]?: number
}

/** @returns lets the connection go; only its first call counts */
export function holdReading(socket: HeldSocket): () => void {
  const holders = (socket[holdersOn] ?? 0) + 1
  socket[holdersOn] = holders
  if (holders === 1) {
    socket.on('resume', pause)
    socket.resume = doNotResume
  }
  socket.pause()
  let isOver = false
  return () => {
    if (isOver) return
    isOver = true
    const left = (socket[holdersOn] ?? 0) - 1
    assert(left >= 0, 'a connection that is let go was held')
    socket[holdersOn] = left
    if (left > 0) return
    socket.off('resume', pause)
    Reflect.deleteProperty(socket, 'resume')
    socket.resume()
  }
}

function doNotResume<Held extends Socket>(this: Held): Held {
  return this
}

function pause(this: Socket): void {
  // A socket that was paused after `resume` and before this event counts as paused already, although node:http reads on.
  if (this.isPaused()) this.emit('pause')
  else this.pause()
}
