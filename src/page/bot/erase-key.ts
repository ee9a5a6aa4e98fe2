/** Erases all that a bot has of a person, a chat or an ordering key, after the reader has seen how much that is. */
import { type BotQueueName, ofQueue } from '../frame/page-calls.ts'
import { formatCount, formatUpdates } from '../elements/format.ts'
import type { PageContext } from '../frame/page-context.ts'

/** Chosen: 100 responses of some 2,000 updates each. What is beyond is erased, too, but not counted before. */
const pagesMax = 100
const perPage = 1_000

/** What is erased: one of both. */
export type Erased = { readonly user: string } | { readonly ordering_key: string }

/** @returns what is wrong, or nothing */
export async function eraseKey(
  { api, ask, toast }: PageContext,
  { botId }: Pick<BotQueueName, 'botId'>,
  query: Erased,
): Promise<string> {
  const [what = ''] = Object.values<string>(query)
  if (what === '')
    return 'Name a user or a chat, such as 42, or an ordering key, such as chat.id=42.'
  const counts = await Promise.all(
    [false, true].map((isTest) => countUpdates(api, { botId, isTest }, query)),
  )
  const count = counts.reduce((sum, each) => sum + each.count, 0)
  const isComplete = counts.every((each) => each.isComplete)
  const updates = formatUpdates(count, isComplete)
  const isWanted = await ask({
    title: `Erase ${updates} of ${what}?`,
    text: 'Those that wait, those that are kept, dead letters and attempts, in both queues of the bot. Nothing of it can be restored. Backups and the write-ahead log of a database keep what they have.',
    action: `Erase ${updates}`,
    isDanger: true,
  })
  if (!isWanted) return ''
  const { removed } = await api.call('eraseUpdates', { id: botId, query })
  const sum = removed.pending + removed.kept + removed.dead
  toast(`${formatCount(sum)} ${sum === 1 ? 'update is' : 'updates are'} erased.`)
  return ''
}

async function countUpdates(
  api: PageContext['api'],
  queue: BotQueueName,
  erased: Erased,
): Promise<{ readonly count: number; readonly isComplete: boolean }> {
  let count = 0
  let after = 0
  for (let page = 0; page < pagesMax; page++) {
    const query = { ...erased, after, limit: perPage }
    const { updates, next } = await api.call('listUpdates', ofQueue(queue, query))
    count += updates.length
    if (next === null) return { count, isComplete: true }
    after = next
  }
  return { count, isComplete: false }
}
