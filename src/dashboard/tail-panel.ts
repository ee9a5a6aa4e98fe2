/**
 * The live tail of a queue. The server sends types and sizes; payloads only if the reader asks for them. The page draws
 * at most once per frame and keeps the last events, so a busy queue cannot fill it.
 */
import { type BotQueueName, ofQueue } from './bot-queue-name.ts'
import { pageCall } from './page-calls.ts'
import { element, setElementText } from './element.ts'
import { formatBytes, formatCount, formatTime } from './format.ts'
import type { PageContext } from './page-context.ts'

/** What others want to know of the tail. */
export interface TailListener {
  /** The bot has confirmed or dropped all updates below this id. */
  confirmedBelow(updateId: number): void
}

export interface TailPanelOptions extends PageContext {
  readonly queue: BotQueueName
  readonly listener: TailListener
}

const shownMax = 200
/** A browser gives up after a response that is an error, which a worker that starts may send. */
const retryMs = 3_000

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

export class TailPanel {
  readonly root: HTMLElement
  readonly #options: TailPanelOptions
  readonly #hasPayloads = element('input', { type: 'checkbox', onchange: () => this.#restart() })
  readonly #state = element('p', { role: 'status', class: 'faint' })
  readonly #events = element('ul', { class: 'events' })
  readonly #visibilityChanged = (): void => this.#restart()
  /** Lines that are not drawn yet, oldest first. */
  #lines: string[] = []
  #frame: number | undefined
  #source: EventSource | undefined
  #cancelRetry: (() => void) | undefined
  #isClosed = false

  constructor(options: TailPanelOptions) {
    this.#options = options
    this.root = element(
      'section',
      { class: 'card' },
      element('h2', {}, 'Live tail'),
      element(
        'div',
        { class: 'controls' },
        element('label', { class: 'check' }, this.#hasPayloads, 'Show payloads'),
        element(
          'button',
          { type: 'button', onclick: () => this.#events.replaceChildren() },
          'Clear',
        ),
      ),
      this.#state,
      element(
        'div',
        { class: 'scroll short', tabindex: 0, role: 'region', 'aria-label': 'Live tail' },
        this.#events,
      ),
    )
    options.visibility.addEventListener('visibilitychange', this.#visibilityChanged)
    this.#restart()
  }

  close(): void {
    this.#isClosed = true
    this.#source?.close()
    this.#cancelRetry?.()
    this.#options.visibility.removeEventListener('visibilitychange', this.#visibilityChanged)
    if (this.#frame !== undefined) cancelAnimationFrame(this.#frame)
  }

  /** A tail costs a connection, so a page in the background has none. */
  #restart(): void {
    this.#source?.close()
    this.#cancelRetry?.()
    if (this.#isClosed || this.#options.visibility.hidden) return
    const input = ofQueue(this.#options.queue, { payload: this.#hasPayloads.checked })
    const source = new EventSource(pageCall('tailQueue', input).target)
    this.#source = source
    this.#say('Connecting…')
    source.addEventListener('open', () => this.#say('Connected: new updates appear here.'))
    source.addEventListener('error', () => {
      if (source.readyState === EventSource.CLOSED) this.#retry()
      else this.#say('Connecting again…')
    })
    this.#on('update', (data) => {
      const event: UpdateEvent = JSON.parse(data)
      this.#add(lineOf(event))
    })
    this.#on('missed', (data) => {
      const { count }: CountEvent = JSON.parse(data)
      this.#add(`${formatCount(count)} events were left out`)
    })
    for (const name of ['confirmed', 'dropped']) {
      this.#on(name, (data) => {
        const { count, below = 0 }: CountEvent = JSON.parse(data)
        this.#add(`${formatCount(count)} ${name}, all below ${below}`)
        this.#options.listener.confirmedBelow(below)
      })
    }
  }

  #retry(): void {
    if (this.#isClosed) return
    this.#say(
      'The tail was refused, because its worker starts, too many tails are open, or the bot is gone. Trying again…',
    )
    this.#cancelRetry?.()
    this.#cancelRetry = this.#options.clock.after(retryMs, () => this.#restart())
  }

  #on(name: string, handle: (data: string) => void): void {
    this.#source?.addEventListener(name, ({ data }: MessageEvent<string>) => handle(data))
  }

  #say(text: string): void {
    setElementText(this.#state, text)
  }

  #add(line: string): void {
    const time = formatTime(this.#options.clock.nowMs() / 1_000)
    this.#lines.push(`${time}  ${line}`)
    if (this.#lines.length > shownMax) this.#lines.shift()
    this.#frame ??= requestAnimationFrame(() => this.#draw())
  }

  #draw(): void {
    this.#frame = undefined
    const items = this.#lines.toReversed().map((line) => element('li', {}, line))
    this.#lines = []
    this.#events.prepend(...items)
    while (this.#events.childElementCount > shownMax) this.#events.lastElementChild?.remove()
  }
}

function lineOf({ update_id: id, type, bytes, update }: UpdateEvent): string {
  const payload = update === undefined ? '' : `\n${JSON.stringify(update, undefined, 1)}`
  return `${id}  ${type}  ${formatBytes(bytes)}${payload}`
}
