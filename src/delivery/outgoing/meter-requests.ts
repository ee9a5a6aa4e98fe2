/**
 * Bounds the answers to what a library asks by node:http in this thread (answer-meter.ts), besides their size and their time.
 * The library makes its requests itself, with its own certificates and agents, so Node.js tells of each one.
 */
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { ClientRequest, type IncomingMessage } from 'node:http'
import type { Clock } from '../../kit/clock.ts'
import { AnswerMeter, AnswerRefused } from './answer-meter.ts'

export interface RequestBounds {
  readonly clock: Clock
  /** A body may have this many bytes. */
  readonly bytesMax: number
  /** An answer must be complete this long after its request was written. */
  readonly timeoutMs: number
}

const channel = 'http.client.request.start'

/** Bounds all answers from now on. Returns a function that ends it. */
export function meterRequests(bounds: RequestBounds): () => void {
  const onRequest = (message: unknown): void => {
    if (typeof message !== 'object' || message === null || !('request' in message)) return
    if (message.request instanceof ClientRequest) meter(message.request, bounds)
  }
  subscribe(channel, onRequest)
  return () => void unsubscribe(channel, onRequest)
}

const tooLate = new AnswerRefused('no complete answer in time')
const noAnswer = new AnswerRefused('what is no answer')

function meter(request: ClientRequest, { clock, bytesMax, timeoutMs }: RequestBounds): void {
  const count = new AnswerMeter()
  count.begin(request.socket?.bytesRead ?? 0)
  let response: IncomingMessage | undefined
  // An error of the request alone would be told as a broken connection.
  const end = (refused: AnswerRefused | undefined): void => {
    if (refused !== undefined) (response ?? request).destroy(refused)
  }
  const onBytes = (): void => end(count.framingOf(request.socket?.bytesRead ?? 0))
  const timer = clock.after(timeoutMs, () => end(tooLate))
  request.socket?.on('data', onBytes)
  const onInterim = (): void => end(count.addInterim())
  request.on('information', onInterim)
  // 100 alone has an event of its own.
  request.on('continue', onInterim)
  let hasFailed = false
  request.once('error', () => {
    hasFailed = true
  })
  request.once('close', () => {
    timer.cancel()
    request.socket?.off('data', onBytes)
    // Of an upgrade that nobody asked for, Node.js tells nothing, and the library would wait for ever.
    if (response === undefined && !hasFailed) request.emit('error', noAnswer)
  })
  // The library begins to read in the same event, so no piece is missed.
  request.prependOnceListener('response', (answer) => {
    response = answer
    answer.on('data', (piece: Buffer) => {
      const refused = count.addPiece(piece.length)
      end(count.weight > bytesMax ? new AnswerRefused(`more than ${bytesMax} bytes`) : refused)
    })
  })
}
