/** The tabs that the page of a bot and the page of its owner share. */
import { attemptsPanel } from './attempts-panel.ts'
import { type BotQueueName, ofQueue } from '../frame/page-calls.ts'
import { element } from '../elements/element.ts'
import { historyPanel } from './history-panel.ts'
import { pollingPanel } from './polling-panel.ts'
import type { PageContext } from '../frame/page-context.ts'
import { arriving } from '../elements/waiting.ts'
import { type TabPart, type BotRoute, unchanging } from './queue-view.ts'
import type { AttemptShape, BotShape, HistoryShape } from '../frame/shapes.ts'
import { stateOf } from '../elements/state-head.ts'
import { updatePanel } from '../updates/update-panel.ts'
import { updatesPanel } from '../updates/updates-panel.ts'

/** The healths of a webhook whose endpoint does not take what is sent. */
const troubled: ReadonlySet<BotShape['health']> = new Set(['failing', 'degraded'])
/** Charts need not be younger. */
const historyPauseMs = 5_000

/**
 * Makes the tab of what happens: charts of the last hour, and the attempts, or the polls of a bot without a webhook.
 *
 * @param onAttempts - gets what is known of the attempts, the newest first, each time that they are read
 */
export function activityTab(
  context: PageContext,
  queue: BotQueueName,
  onAttempts?: (attempts: readonly AttemptShape[]) => void,
): TabPart {
  const attempts = attemptsPanel(context, queue, {
    // Whoever takes the attempts shows the last answer.
    hasAnswer: onAttempts === undefined,
    onRead(read) {
      arrived?.()
      onAttempts?.(read)
    },
  })
  let arrived: (() => void) | undefined
  const charts = historyPanel(context)
  const polls = pollingPanel(context)
  const root = element('div', { class: 'activity' }, charts.root, polls.root, attempts.root)
  let history: HistoryShape | undefined
  let mode: BotShape['mode'] | undefined
  const draw = (): void => {
    if (history === undefined || mode === undefined) return
    const showHistory = mode === 'webhook' ? charts.show : polls.showHistory
    showHistory(history)
  }
  // Asked for at once, whatever the mode is, and once for all charts.
  context.poll(historyPauseMs, async () => {
    history = await context.api.call('getHistory', ofQueue(queue, {}))
    draw()
  })
  const show = (bot: BotShape): void => {
    const state = stateOf(bot, queue)
    // Of a bot that fails, the answers of its endpoint are what its reader looks for. Later, nothing moves any more.
    if (mode === undefined && troubled.has(state.health)) {
      root.prepend(attempts.root)
      arrived = arriving(context, attempts.root)
    }
    const isNew = state.mode !== mode
    mode = state.mode
    charts.root.hidden = mode !== 'webhook'
    attempts.root.hidden = mode !== 'webhook'
    attempts.show(mode)
    polls.show(state)
    if (isNew) draw()
  }
  return { root, show }
}

/** Makes the tab of updates: their list, or one of them. */
export function updatesTab(context: PageContext, { queue, updateId }: BotRoute): TabPart {
  return unchanging(
    updateId === undefined ? updatesPanel(context, queue) : updatePanel(context, queue, updateId),
  )
}
