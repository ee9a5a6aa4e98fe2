/** The text of server-sent events (HTML standard, 9.2), which an EventSource reads. */
import assert from 'node:assert/strict'

/** The headers of a response with server-sent events. */
export const serverSentEventsHead = {
  'Content-Type': 'text/event-stream',
  'Cache-Control': 'no-store',
} as const

/** Shows both sides that the connection is alive. */
export const serverSentComment = Buffer.from(':\n\n')

/** Tells the reader how long to wait before it connects again. */
export function serverSentRetry(ms: number): Buffer {
  return Buffer.from(`retry: ${ms}\n\n`)
}

/** Tells the reader what it sends as Last-Event-ID from now on, without an event. */
export function serverSentPosition(id: string): Buffer {
  assert(!/[\r\n]/.test(id), 'a position is on one line')
  return Buffer.from(`id: ${id}\n\n`)
}

/**
 * Returns an event.
 *
 * @param data - JSON. A line break within it begins another `data:` line. JSON allows line breaks between its parts only.
 * @param id - what the reader sends as Last-Event-ID when it connects again
 */
export function serverSentEvent(name: string, data: string, id?: string): Buffer {
  const lines = data.replaceAll(/\r\n|\r|\n/g, '\ndata: ')
  return Buffer.from(`${id === undefined ? '' : `id: ${id}\n`}event: ${name}\ndata: ${lines}\n\n`)
}
