/**
 * The live tail of a queue. The server sends types and sizes; payloads only if the reader asks for them. The page draws
 * at most once per frame and keeps the last events, so a busy queue cannot fill it.
 */
import {
  buttonElement,
  cardElement,
  type Child,
  element,
  scrollElement,
} from '../elements/element.ts'
import { formatCount, formatTime } from '../elements/format.ts'
import { type BotQueueName, ofQueue, pageCall } from '../frame/page-calls.ts'
import type { PageContext } from '../frame/page-context.ts'
import type { PushPanel } from '../bot/push-panel.ts'
import { serverEvents } from '../frame/server-events.ts'
import { statusLine } from '../elements/messages.ts'
import { tailedUpdate } from './readable-update.ts'
import { updateLink } from '../elements/page-part.ts'

const shownMax = 200

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
  const hasPayloads = element('input', { type: 'checkbox', onchange: () => tail.restart() })
  const state = statusLine('faint')
  const events = element('ul', { class: 'events' })
  const add = lineDrawer(context, events)
  const removed = (name: string) => (data: string) => {
    const { count, below = 0 }: CountEvent = JSON.parse(data)
    add(`${formatCount(count)} ${name}, all below ${below}`)
    listener.confirmedBelow(below)
  }
  const tail = serverEvents(context, {
    targetOf: () =>
      pageCall('tailQueue', ofQueue(queue, { payload: hasPayloads.checked, excerpt: true })).target,
    say: state.say,
    connectedText: 'Connected: new updates appear here.',
    refusedText:
      'The tail was refused, because its worker starts, too many tails are open, or the bot is gone. Trying again…',
    on: {
      update: (data) => {
        const { updateId, text } = tailedUpdate(data)
        add(updateLink(queue, updateId), text)
      },
      missed: (data) => {
        const { count }: CountEvent = JSON.parse(data)
        add(`${formatCount(count)} events were left out`)
      },
      confirmed: removed('confirmed'),
      dropped: removed('dropped'),
    },
  })
  const controls = [
    element('label', { class: 'check' }, hasPayloads, 'Show payloads'),
    buttonElement('Clear', () => events.replaceChildren(), { style: 'quiet small' }),
  ]
  return cardElement(
    'Live tail',
    element('div', { class: 'controls' }, state.root, ...controls),
    scrollElement('Live tail', events, 'scroll short'),
  )
}

/** Returns a function that adds a line at the top of a list, at the next frame. */
function lineDrawer(
  { clock, atEnd }: PageContext,
  list: HTMLElement,
): (...line: readonly Child[]) => void {
  /** Lines that are not drawn yet, oldest first. */
  let lines: (readonly Child[])[] = []
  let frame: number | undefined
  const draw = (): void => {
    frame = undefined
    list.prepend(...lines.toReversed().map((line) => element('li', {}, ...line)))
    lines = []
    while (list.childElementCount > shownMax) list.lastElementChild?.remove()
  }
  atEnd(() => cancelAnimationFrame(frame ?? 0))
  return (...line) => {
    lines.push([`${formatTime(clock.nowMs() / 1_000)}  `, ...line])
    if (lines.length > shownMax) lines.shift()
    frame ??= requestAnimationFrame(draw)
  }
}
