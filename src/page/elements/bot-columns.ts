/** The columns of a list of bots that say which bot a row is about. */
import { botHash, type BotTab } from '../frame/page-route.ts'
import type { Column } from './data-table.ts'
import { element } from './element.ts'

interface NamedBot {
  readonly bot_id: number
  readonly first_name: string
  readonly username: string
}

/** @param tab - of the page of the bot to which its name leads */
export function botColumns<Bot extends NamedBot>(
  tab?: BotTab,
): readonly [name: Column<Bot>, id: Column<Bot>] {
  const name: Column<Bot> = {
    title: 'Bot',
    style: 'name',
    isHead: true,
    isPlain: true,
    cell: ({ bot_id: id, first_name: first, username }) => {
      const href = botHash({ botId: `${id}`, isTest: false }, tab)
      const link = element('a', { href, 'data-bot': id, class: 'row-link' }, first)
      return [link, element('span', { class: 'faint' }, ` @${username}`)]
    },
    // A long one is cut in its cell.
    hint: ({ first_name: first, username }) => `${first} @${username}`,
  }
  const id: Column<Bot> = {
    title: 'Id',
    style: 'number faint',
    cell: ({ bot_id: value }) => `${value}`,
  }
  return [name, id]
}
