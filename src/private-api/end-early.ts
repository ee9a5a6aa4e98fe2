import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Clock } from '../clock.ts'
import { drainMs, refusedLingerMs } from '../limits.ts'

export interface UnfinishedRequest {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly clock: Clock
}

/**
 * Ends the answer to a producer that still sends. Unread bytes at close(2) would make the kernel send a reset that
 * overtakes the answer, so they are read and dropped until the producer has seen its end, or for a moment. One that
 * does not read its answer is not waited for longer than a server waits at its end.
 */
export async function endEarly({ request, response, clock }: UnfinishedRequest): Promise<void> {
  const { socket } = request
  // What node:http calls behind the last answer of a connection: half-closed first, destroyed below.
  socket.destroySoon = () => void socket.end()
  await new Promise<void>((resolve) => {
    const timer = clock.after(drainMs, resolve)
    response.once('close', () => {
      timer.cancel()
      resolve()
    })
    response.end()
  })
  if (response.writableFinished && !socket.destroyed) {
    await new Promise<void>((resolve) => {
      const timer = clock.after(refusedLingerMs, resolve)
      socket.once('close', () => {
        timer.cancel()
        resolve()
      })
      // The iterator that was left waits for this event, and nothing flows while somebody does.
      request.removeAllListeners('readable')
      request.resume()
      socket.end()
    })
  }
  socket.destroy()
}
