/** The usernames of bots of which a list has only the ids. */
import type { PageContext } from '../frame/page-context.ts'
import { isTrouble } from '../frame/api-client.ts'

/** Each is a call. Chosen: fills the screen; those of further bots are read when the list is read again. */
const askedMax = 30

/** Remembers names, and reads those that it does not know. Never rejects. */
export function botNames({
  api,
}: Pick<PageContext, 'api'>): (
  ids: readonly number[],
) => Promise<ReadonlyMap<number, string | undefined>> {
  /** A bot that is not registered has none. */
  const names = new Map<number, string | undefined>()
  const read = async (id: number): Promise<void> => {
    try {
      names.set(id, (await api.call('getBot', { id: `${id}` })).username)
    } catch (error) {
      if (!isTrouble(error)) names.set(id, undefined)
    }
  }
  return async (ids) => {
    const unknown = [...new Set(ids)].filter((id) => !names.has(id))
    await Promise.all(unknown.slice(0, askedMax).map(read))
    return names
  }
}
