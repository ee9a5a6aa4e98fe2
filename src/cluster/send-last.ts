import type { Socket } from 'node:net'
import type { Clock } from '../clock.ts'
import { refusedLingerMs } from '../limits.ts'

/**
 * Writes the answer and closes. Unread bytes at close(2) would make the kernel send a reset that overtakes the
 * answer, so what the client still sends is read and dropped for a moment.
 */
export function sendLast(clock: Clock, socket: Socket, answer: Buffer): void {
  const timer = clock.after(refusedLingerMs, () => void socket.destroy())
  socket.once('close', () => timer.cancel())
  socket.once('end', () => void socket.destroy())
  socket.end(answer)
}
