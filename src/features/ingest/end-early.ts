import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Clock } from '../../kit/clock.ts'
import { drainMs, refusedLingerMs } from '../../kit/limits.ts'

/** A request whose body has not been read to its end. */
export interface UnfinishedRequest {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly clock: Clock
}

/**
 * Ends the response to a producer that is still sending.
 *
 * Unread bytes at close(2) would make the kernel send a reset that overtakes the response. They are therefore read and
 * dropped until the producer has received the end of the response, or for `refusedLingerMs`. A producer that does not
 * read its response is waited for at most `drainMs`, as at the end of a server.
 */
export async function endEarly({ request, response, clock }: UnfinishedRequest): Promise<void> {
  const { socket } = request
  // node:http calls this after the last response of a connection. The socket is half-closed first and destroyed below.
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
      // The abandoned iterator still listens for this event, and no data flows while there is a listener.
      request.removeAllListeners('readable')
      request.resume()
      socket.end()
    })
  }
  socket.destroy()
}
