/** The settings of a bot for a reader who may not change them: what they are, and no fields. */
import { factList, type PagePart } from '../elements/page-part.ts'
import { formatAge, formatCount } from '../elements/format.ts'
import { type BotQueueName, ofQueue } from '../frame/page-calls.ts'
import type { PageContext } from '../frame/page-context.ts'
import { retentionText } from './retention-panel.ts'
import { settingCard } from './setting-card.ts'
import type { BotShape, ResultShape } from '../frame/shapes.ts'
import { stateOf } from '../elements/state-head.ts'

const pauseMs = 5_000

export function settingsFacts({ api, poll }: PageContext, queue: BotQueueName): PagePart<BotShape> {
  const facts = factList()
  let bot: BotShape | undefined
  let limits: ResultShape<'getLimits'> | undefined
  let retention: ResultShape<'getRetention'> | undefined
  const draw = (): void => {
    if (bot === undefined) return
    const { mode } = stateOf(bot, queue)
    const limit = limits?.deliveries_per_second ?? null
    facts.show([
      ['First name', bot.first_name],
      ['Username', bot.username],
      ['Updates expire after', formatSet(bot.default_ttl, formatAge, 'the usual time')],
      ['Connections, at most', formatSet(bot.connections_cap, formatCount, 'no cap')],
      ['Seconds before each retry', bot.retry_delays?.join(', ') ?? 'the usual ones'],
      ...(mode === 'webhook'
        ? ([['Deliveries per second', formatSet(limit, formatCount, 'no limit')]] as const)
        : []),
      ['Pushes are checked', bot.validate === null ? 'no' : 'yes'],
      ['Polls take over', (bot.polls ?? null) === null ? 'no, they get 409' : 'yes'],
      ['Look back', retention === undefined ? '–' : retentionText(retention)],
    ])
  }
  poll(pauseMs, async () => {
    const input = ofQueue(queue, {})
    ;[limits, retention] = await Promise.all([
      api.call('getLimits', input),
      api.call('getRetention', input),
    ])
    draw()
  })
  const show = (shown: BotShape): void => {
    bot = shown
    draw()
  }
  const about = 'Your key may read them. To change them, it needs the scope manage.'
  return { root: settingCard('Settings', about, facts.root), show }
}

function formatSet(
  value: number | null | undefined,
  format: (value: number) => string,
  none: string,
): string {
  return typeof value === 'number' ? format(value) : none
}
