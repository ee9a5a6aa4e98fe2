/** The tabs that the page of a bot and the page of its owner share. */
import { attemptsPanel } from './attempts-panel.ts'
import type { BotQueueName } from '../frame/page-calls.ts'
import { element } from '../elements/element.ts'
import { historyPanel } from './history-panel.ts'
import type { PageContext } from '../frame/page-context.ts'
import { type TabPart, type BotRoute, unchanging } from './queue-view.ts'
import type { AttemptShape, BotShape } from '../frame/shapes.ts'
import { stateOf } from '../elements/state-head.ts'
import { updatePanel } from '../updates/update-panel.ts'
import { updatesPanel } from '../updates/updates-panel.ts'

/**
 * Makes the tab of what happens: charts of the last hour, and the attempts.
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
  const root = element(
    'div',
    { class: 'activity' },
    element('div', { class: 'row' }, ...charts),
    attempts.root,
  )
  const show = (bot: BotShape): void => {
    const { mode } = stateOf(bot, queue)
    for (const chart of charts) chart.hidden = mode !== 'webhook'
    attempts.show(mode)
  }
  return { root, show }
}

/** Makes the tab of updates: their list, or one of them. */
export function updatesTab(context: PageContext, { queue, updateId }: BotRoute): TabPart {
  return unchanging(
    updateId === undefined ? updatesPanel(context, queue) : updatePanel(context, queue, updateId),
  )
}
