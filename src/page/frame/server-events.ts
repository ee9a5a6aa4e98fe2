/**
 * Reads a stream of server-sent events while the page is visible: a stream costs a connection, so a page in the background has
 * none. A stream that breaks is opened again.
 */
import type { PageContext } from './page-context.ts'

export interface ServerEvents {
  /** Opens the stream anew, because its target is another one now. */
  readonly restart: () => void
}

export interface ServerEventsOptions {
  /** Returns the address of the stream. */
  readonly targetOf: () => string
  /** Says how the stream is. */
  readonly say: (text: string) => void
  readonly connectedText: string
  readonly refusedText: string
  /** Called each time before the server tells again what it has told. */
  readonly onBegin?: () => void
  /** What is done with the data of each event, by the name of the event. */
  readonly on: Readonly<Record<string, (data: string) => void>>
}

/** A browser gives up after a response that is an error, which a worker that starts may send. */
const retryMs = 3_000

/** Opens the stream until the view is left. */
export function serverEvents(
  { clock, visibility, atEnd }: PageContext,
  { targetOf, say, connectedText, refusedText, onBegin, on }: ServerEventsOptions,
): ServerEvents {
  let source: EventSource | undefined
  let cancelRetry: (() => void) | undefined

  function stop(): void {
    source?.close()
    cancelRetry?.()
  }

  function restart(): void {
    stop()
    if (visibility.hidden) return
    onBegin?.()
    const opened = new EventSource(targetOf())
    source = opened
    say('Connecting…')
    opened.addEventListener('open', () => say(connectedText))
    opened.addEventListener('error', () => {
      const isRefused = opened.readyState === EventSource.CLOSED
      say(isRefused ? refusedText : 'Connecting again…')
      if (isRefused) cancelRetry = clock.after(retryMs, restart)
    })
    for (const [name, handle] of Object.entries(on)) {
      opened.addEventListener(name, ({ data }: MessageEvent<string>) => handle(data))
    }
  }

  restart()
  visibility.addEventListener('visibilitychange', restart)
  atEnd(() => {
    visibility.removeEventListener('visibilitychange', restart)
    stop()
  })
  return { restart }
}
