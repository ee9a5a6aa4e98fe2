/**
 * The live tail of a queue. The server sends types and sizes; payloads only if the reader asks for them. The page draws
 * at most once per frame and keeps the last events, so a busy queue cannot fill it.
 */
import { type BotQueueName, ofQueue } from './bot-queue-name.ts'
import { buttonElement, cardElement, element, scrollElement } from './element.ts'
import { formatBytes, formatCount, formatTime } from './format.ts'
import { pageCall } from './page-calls.ts'
import type { PageContext } from './page-context.ts'
import type { PushPanel } from './push-panel.ts'
import { statusLine } from './status-line.ts'

const shownMax = 200
/** A browser gives up after a response that is an error, which a worker that starts may send. */
const retryMs = 3_000
const refusedText =
  'The tail was refused, because its worker starts, too many tails are open, or the bot is gone. Trying again…'

interface UpdateEvent {
  readonly update_id: number
  readonly type: string
  readonly bytes: number
  readonly update?: object
}

interface CountEvent {
  readonly count: number
  readonly below?: number
}

/**
 * Makes the panel.
 *
 * @param listener - what wants to know that the bot has confirmed or dropped all updates below an id
 */
export function tailPanel(
  context: PageContext,
  queue: BotQueueName,
  listener: Pick<PushPanel, 'confirmedBelow'>,
): HTMLElement {
  const { clock, visibility, atEnd } = context
  const hasPayloads = element('input', { type: 'checkbox', onchange: () => restart() })
  const state = statusLine('faint')
  const events = element('ul', { class: 'events' })
  const add = lineDrawer(context, events)
  let source: EventSource | undefined
  let cancelRetry: (() => void) | undefined

  function stop(): void {
    source?.close()
    cancelRetry?.()
  }

  /** A tail costs a connection, so a page in the background has none. */
  function restart(): void {
    stop()
    if (visibility.hidden) return
    const input = ofQueue(queue, { payload: hasPayloads.checked })
    const opened = new EventSource(pageCall('tailQueue', input).target)
    source = opened
    state.say('Connecting…')
    opened.addEventListener('open', () => state.say('Connected: new updates appear here.'))
    opened.addEventListener('error', () => {
      const isRefused = opened.readyState === EventSource.CLOSED
      state.say(isRefused ? refusedText : 'Connecting again…')
      if (isRefused) cancelRetry = clock.after(retryMs, restart)
    })
    const on = (name: string, handle: (data: string) => void): void =>
      opened.addEventListener(name, ({ data }: MessageEvent<string>) => handle(data))
    on('update', (data) => add(updateText(JSON.parse(data))))
    on('missed', (data) => {
      const { count }: CountEvent = JSON.parse(data)
      add(`${formatCount(count)} events were left out`)
    })
    for (const name of ['confirmed', 'dropped']) {
      on(name, (data) => {
        const { count, below = 0 }: CountEvent = JSON.parse(data)
        add(`${formatCount(count)} ${name}, all below ${below}`)
        listener.confirmedBelow(below)
      })
    }
  }

  restart()
  visibility.addEventListener('visibilitychange', restart)
  atEnd(() => {
    visibility.removeEventListener('visibilitychange', restart)
    stop()
  })
  const controls = [
    element('label', { class: 'check' }, hasPayloads, 'Show payloads'),
    buttonElement('Clear', () => events.replaceChildren()),
  ]
  return cardElement(
    'Live tail',
    element('div', { class: 'controls' }, ...controls),
    state.root,
    scrollElement('Live tail', events, 'scroll short'),
  )
}

/** Returns a function that adds a line at the top of a list, at the next frame. */
function lineDrawer({ clock, atEnd }: PageContext, list: HTMLElement): (line: string) => void {
  /** Lines that are not drawn yet, oldest first. */
  let lines: string[] = []
  let frame: number | undefined
  const draw = (): void => {
    frame = undefined
    list.prepend(...lines.toReversed().map((line) => element('li', {}, line)))
    lines = []
    while (list.childElementCount > shownMax) list.lastElementChild?.remove()
  }
  atEnd(() => cancelAnimationFrame(frame ?? 0))
  return (line) => {
    lines.push(`${formatTime(clock.nowMs() / 1_000)}  ${line}`)
    if (lines.length > shownMax) lines.shift()
    frame ??= requestAnimationFrame(draw)
  }
}

function updateText({ update_id: id, type, bytes, update }: UpdateEvent): string {
  const payload = update === undefined ? '' : `\n${JSON.stringify(update, undefined, 1)}`
  return `${id}  ${type}  ${formatBytes(bytes)}${payload}`
}
