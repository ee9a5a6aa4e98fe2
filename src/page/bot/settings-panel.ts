/** What an operator sets of a bot, one card below the other, and at the end what cannot be undone. */
import type { BotQueueName } from '../frame/page-calls.ts'
import { dangerZone } from './danger-zone.ts'
import { deliverySettingsPanel } from './delivery-settings-panel.ts'
import { element } from '../elements/element.ts'
import { headersPanel } from './headers-panel.ts'
import { limitPanel } from './limit-panel.ts'
import { linksPanel } from './links-panel.ts'
import type { PageContext } from '../frame/page-context.ts'
import type { PagePart } from '../elements/page-part.ts'
import { relayPanel } from './relay-panel.ts'
import { retentionPanel } from './retention-panel.ts'
import { sectionLinks } from '../elements/section-links.ts'
import { settingsFacts } from './settings-facts.ts'
import type { BotShape } from '../frame/shapes.ts'
import { signingKeysPanel } from './signing-keys-panel.ts'
import { stateOf } from '../elements/state-head.ts'
import { webhookPanel } from './webhook-panel.ts'

/** Shows the settings of a queue, with those of its bot. */
export function settingsPanel(context: PageContext, queue: BotQueueName): PagePart<BotShape> {
  const webhook = webhookPanel(context, queue)
  const mayManage = context.may('manage')
  const settings = (mayManage ? deliverySettingsPanel : settingsFacts)(context, queue)
  const headers = headersPanel(context, queue.botId)
  const relay = relayPanel(context, queue.botId)
  const limit = mayManage ? limitPanel(context, queue) : undefined
  const cards = [
    webhook.root,
    settings.root,
    headers.root,
    limit,
    relay.root,
    mayManage ? retentionPanel(context, queue) : undefined,
    signingKeysPanel(context, queue),
    linksPanel(context, queue),
    mayManage ? dangerZone(context, queue) : undefined,
  ].filter((card) => card !== undefined)
  const links = sectionLinks(context, cards)
  const root = element('div', { class: 'settings' }, links.root, ...cards)
  const show = (bot: BotShape): void => {
    const state = stateOf(bot, queue)
    webhook.show(state)
    settings.show(bot)
    headers.show(bot)
    relay.show(bot)
    if (limit !== undefined) limit.hidden = state.mode !== 'webhook'
    links.show()
  }
  return { root, show }
}
