/** The tabs that the page of a bot and the page of its owner share. */
import { attemptsPanel } from './attempts-panel.ts'
import type { BotQueueName } from '../frame/page-calls.ts'
import { element } from '../elements/element.ts'
import { historyPanel } from './history-panel.ts'
import { pollingPanel } from './polling-panel.ts'
import type { PageContext } from '../frame/page-context.ts'
import { type TabPart, type BotRoute, unchanging } from './queue-view.ts'
import type { AttemptShape, BotShape } from '../frame/shapes.ts'
import { stateOf } from '../elements/state-head.ts'
import { updatePanel } from '../updates/update-panel.ts'
import { updatesPanel } from '../updates/updates-panel.ts'

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
  const attempts = attemptsPanel(context, queue, onAttempts)
  const charts = historyPanel(context, queue)
  const polls = pollingPanel(context, queue)
  const root = element(
    'div',
    { class: 'activity' },
    element('div', { class: 'row' }, ...charts),
    polls.root,
    attempts.root,
  )
  const show = (bot: BotShape): void => {
    const state = stateOf(bot, queue)
    const { mode } = state
    for (const chart of charts) chart.hidden = mode !== 'webhook'
    attempts.root.hidden = mode !== 'webhook'
    attempts.show(mode)
    polls.show(state)
  }
  return { root, show }
}

/** Makes the tab of updates: their list, or one of them. */
export function updatesTab(context: PageContext, { queue, updateId }: BotRoute): TabPart {
  return unchanging(
    updateId === undefined ? updatesPanel(context, queue) : updatePanel(context, queue, updateId),
  )
}
