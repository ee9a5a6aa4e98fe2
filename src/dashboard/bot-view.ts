/** The page of one queue of one bot: its state, and everything that an operator does with it. */
import { isTrouble } from './api-client.ts'
import { AttemptsPanel } from './attempts-panel.ts'
import { type BotQueueName, ofQueue } from './bot-queue-name.ts'
import { DeadLettersPanel } from './dead-letters-panel.ts'
import { element, setElementText } from './element.ts'
import { errorText } from './error-text.ts'
import { formatAge, formatBytes, formatCount, formatTime } from './format.ts'
import { HistoryPanel } from './history-panel.ts'
import { LimitPanel } from './limit-panel.ts'
import type { PageContext, PageView } from './page-context.ts'
import { PushPanel } from './push-panel.ts'
import type { BotShape, QueueShape } from './shapes.ts'
import { TailPanel } from './tail-panel.ts'
import { VisiblePoller } from './visible-poller.ts'

const pauseMs = 1_000
/** For what changes by the minute. */
const slowPauseMs = 5_000

export interface BotViewOptions extends PageContext {
  readonly queue: BotQueueName
  confirm(question: string): boolean
  /** Whether the key is for all bots, so that others with the same username can be looked for. */
  readonly seesAll: boolean
}

export class BotView implements PageView {
  readonly title: string
  readonly root: HTMLElement
  readonly #options: BotViewOptions
  readonly #heading: HTMLElement
  readonly #health = element('p')
  /** The sentence of the health counts seconds; a screen reader hears only its word. */
  readonly #heard = element('p', { role: 'status', class: 'hidden-label' })
  readonly #result = element('p', { role: 'alert', class: 'error note' })
  readonly #facts = element('dl', { class: 'facts' })
  readonly #sameName = element('p', { class: 'degraded', hidden: true })
  readonly #pause = element(
    'button',
    { type: 'button', onclick: () => void this.#post(this.#isPaused ? 'resumeBot' : 'pauseBot') },
    'Pause deliveries',
  )
  readonly #retry = element(
    'button',
    { type: 'button', onclick: () => void this.#post('retryBot') },
    'Retry now',
  )
  readonly #attempts = new AttemptsPanel()
  readonly #history = new HistoryPanel()
  readonly #limit: LimitPanel
  readonly #deadLetters: DeadLettersPanel
  readonly #push: PushPanel
  readonly #tail: TailPanel
  readonly #pollers: readonly VisiblePoller[]
  #isPaused = false
  /** Whether the state of the bot was read. */
  #isKnown = false

  constructor(options: BotViewOptions) {
    this.#options = options
    const { queue, clock } = options
    this.#limit = new LimitPanel(options)
    this.#deadLetters = new DeadLettersPanel(options)
    this.#push = new PushPanel({ ...options, nowMs: clock.nowMs() })
    this.#tail = new TailPanel({ ...options, listener: this.#push })
    this.title = `Bot ${queue.botId}${queue.isTest ? ', /test/ queue' : ''}`
    this.#heading = element('h1', {}, this.title)
    this.root = this.#layout()
    this.#showMode(false)
    this.#pollers = [
      new VisiblePoller({ ...options, pauseMs, work: () => this.#refresh() }),
      new VisiblePoller({ ...options, pauseMs: slowPauseMs, work: () => this.#refreshSlowly() }),
    ]
  }

  close(): void {
    for (const poller of this.#pollers) poller.close()
    this.#tail.close()
    this.#history.close()
  }

  #layout(): HTMLElement {
    const { queue } = this.#options
    const other = queue.isTest ? ['', 'the main queue'] : ['/test', 'the /test/ queue']
    return element(
      'div',
      {},
      element(
        'p',
        {},
        element('a', { href: '#/' }, 'All bots'),
        ' · ',
        element('a', { href: `#/bots/${queue.botId}${other[0]}` }, `Show ${other[1]}`),
      ),
      this.#heading,
      element(
        'div',
        { class: 'row' },
        element(
          'section',
          { class: 'card' },
          element('h2', {}, 'State'),
          this.#health,
          this.#heard,
          this.#sameName,
          this.#facts,
          element('p', { class: 'note' }, this.#pause, ' ', this.#retry),
          this.#result,
          this.#limit.root,
        ),
        this.#history.outcomes.root,
        this.#history.latency.root,
      ),
      this.#attempts.root,
      this.#deadLetters.root,
      element('div', { class: 'pair' }, this.#push.root, this.#tail.root),
    )
  }

  async #refresh(): Promise<void> {
    const { api, queue } = this.#options
    try {
      const [bot, { attempts }] = await Promise.all([
        api.call('getBot', { id: queue.botId }),
        api.call('listAttempts', ofQueue(queue, {})),
      ])
      this.#showState(bot, queue.isTest ? bot.test : bot)
      this.#attempts.show(attempts)
      this.#push.attempted(attempts)
    } catch (error) {
      this.#fail(error)
    }
  }

  async #refreshSlowly(): Promise<void> {
    const { api, queue } = this.#options
    try {
      this.#history.show(await api.call('getHistory', ofQueue(queue, {})))
      await this.#limit.refresh()
      await this.#deadLetters.refresh()
    } catch (error) {
      this.#fail(error)
    }
  }

  #showState(bot: BotShape, queue: QueueShape): void {
    if (!this.#isKnown && this.#options.seesAll) void this.#lookForSameName(bot)
    const name = `${bot.first_name} (@${bot.username}), ${bot.bot_id}`
    setElementText(this.#heading, this.#options.queue.isTest ? `${name}, /test/ queue` : name)
    this.#isPaused = queue.paused
    this.#isKnown = true
    this.#showMode(queue.mode === 'webhook')
    this.#retry.hidden = !this.#options.may('manage') || queue.paused || queue.parked_keys === 0
    setElementText(this.#pause, queue.paused ? 'Resume deliveries' : 'Pause deliveries')
    const { health, health_reason: reason } = queue
    this.#health.className = health ?? 'faint'
    setElementText(this.#health, `${health ?? queue.mode}: ${reason}`)
    setElementText(this.#heard, health ?? 'polling')
    const facts = factsOf(queue)
    this.#facts.replaceChildren(
      ...facts.flatMap(([fact, value]) => [element('dt', {}, fact), element('dd', {}, value)]),
    )
  }

  /** The server takes a username that another bot has. */
  async #lookForSameName({ bot_id: id, username }: BotShape): Promise<void> {
    const found = await this.#options.api
      .call('listBots', { query: { prefix: username, limit: 1_000 } })
      .catch(() => undefined)
    const others = (found?.bots ?? []).filter(
      (each) => each.bot_id !== id && each.username.toLowerCase() === username.toLowerCase(),
    )
    this.#sameName.hidden = others.length === 0
    const ids = others.slice(0, 10).map((each) => each.bot_id)
    setElementText(this.#sameName, `The username is also that of bot ${ids.join(', ')}.`)
  }

  /** A bot that polls has no deliveries. Nothing can be done with one that is not known. */
  #showMode(hasWebhook: boolean): void {
    const { outcomes, latency } = this.#history
    const options = this.#options
    for (const { root } of [this.#deadLetters, this.#tail]) root.hidden = !this.#isKnown
    this.#push.root.hidden = !this.#isKnown || !options.may('push')
    for (const { root } of [outcomes, latency, this.#attempts, this.#limit]) {
      root.hidden = !hasWebhook
    }
    this.#pause.hidden = !options.may('manage') || (!hasWebhook && !this.#isPaused)
  }

  async #post(id: 'pauseBot' | 'resumeBot' | 'retryBot'): Promise<void> {
    const { api, queue } = this.#options
    setElementText(this.#result, '')
    try {
      await api.call(id, ofQueue(queue, {}))
    } catch (error) {
      setElementText(this.#result, errorText(error))
    }
    this.#pollers[0]?.hurry()
  }

  /** The header of the page says that the server is in trouble; what was read before stays. */
  #fail(error: unknown): void {
    if (isTrouble(error) && this.#isKnown) return
    this.#health.className = 'error'
    setElementText(this.#health, errorText(error))
  }
}

function factsOf(queue: QueueShape): readonly (readonly [string, string])[] {
  const common = [
    ['Mode', queue.mode],
    ['Pending', `${formatCount(queue.pending)} (${formatBytes(queue.pending_bytes)})`],
    ['Oldest', formatAge(queue.oldest_age)],
    ['Dead letters', formatCount(queue.dead_letters)],
  ] as const
  if (queue.mode === 'polling')
    return [...common, ['Poll waits', queue.waiting_poll ? 'yes' : 'no']]
  return [
    ...common,
    ['Host', queue.webhook_host ?? '–'],
    ['Connections, at most', formatCount(queue.max_connections)],
    ['Keys that wait for a retry', formatCount(queue.parked_keys)],
    ['Next attempt', formatTime(queue.next_attempt)],
    ['Last error', queue.last_error_message ?? '–'],
  ]
}
