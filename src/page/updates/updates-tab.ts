import type { PageContext } from '../frame/page-context.ts'
import { type BotRoute, type TabPart, unchanging } from '../bot/queue-view.ts'
import { updatePanel } from './update-panel.ts'
import { updatesPanel } from './updates-panel.ts'

/** Makes the tab of updates: their list, or one of them. */
export function updatesTab(context: PageContext, { queue, updateId }: BotRoute): TabPart {
  return unchanging(
    updateId === undefined ? updatesPanel(context, queue) : updatePanel(context, queue, updateId),
  )
}
