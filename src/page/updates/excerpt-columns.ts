/** Who and what an update is about, for the rows of lists. Its texts are of strangers, so each has its own direction of writing. */
import { type Child, element } from '../elements/element.ts'
import type { Column } from '../elements/data-table.ts'
import { type Excerpted, type ExcerptParty, whatHint, whoHint } from './readable-update.ts'

/** The columns of a list of updates that its server has sent with excerpts. */
export const excerptColumns = [
  { title: 'From', cell: whoCell, hint: whoHint, style: 'who' },
  { title: 'What', isPlain: true, cell: whatCell, hint: whatHint, style: 'excerpt' },
] as const satisfies readonly Column<Excerpted>[]

/** Who sent it, and where, if that is not the chat with the sender. */
function whoCell({ excerpt }: Excerpted): readonly Child[] {
  const { from, chat } = excerpt ?? {}
  if (from === undefined) return partyParts(chat)
  // Either may have the names of both.
  if (from.id === chat?.id) return partyParts({ ...chat, ...from })
  if (chat === undefined) return partyParts(from)
  const place = element('span', { class: 'faint' }, ' in ', nameElement(chat))
  return [...partyParts(from), place]
}

/** What it is, and its first words. */
function whatCell({ excerpt }: Excerpted): readonly Child[] {
  const { content, text } = excerpt ?? {}
  const kind = content === undefined ? undefined : content.replaceAll('_', ' ')
  const words = text === undefined ? undefined : element('bdi', {}, text)
  if (kind === undefined) return [words ?? '–']
  return [element('span', { class: 'kind' }, kind), words]
}

function partyParts(party: ExcerptParty | undefined): readonly Child[] {
  if (party === undefined) return ['–']
  const id = element('span', { class: 'faint' }, ` ${party.id}`)
  const hasName = party.name !== undefined || party.username !== undefined
  return hasName ? [nameElement(party), id] : [party.id]
}

function nameElement({ id, name, username }: ExcerptParty): HTMLElement {
  return element('bdi', {}, name ?? (username === undefined ? id : `@${username}`))
}
