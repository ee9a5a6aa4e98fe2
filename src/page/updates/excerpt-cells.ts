/** Who and what an update is about, for the rows of lists. Its texts are of strangers, so each has its own direction of writing. */
import { type Child, element } from '../elements/element.ts'
import type { UpdateShape } from '../frame/shapes.ts'

/** A server of an earlier version sends none. */
export type ExcerptShape = NonNullable<UpdateShape['excerpt']>
/** A row of a list. */
interface Excerpted {
  readonly excerpt?: ExcerptShape | undefined
}

type Party = NonNullable<ExcerptShape['from']>

/** Who sent it, and where, if that is not the chat with the sender. */
export function whoCell({ excerpt }: Excerpted): readonly Child[] {
  const { from, chat } = excerpt ?? {}
  if (from === undefined || from.id === chat?.id) return partyParts(chat ?? from)
  if (chat === undefined) return partyParts(from)
  const place = element('span', { class: 'faint' }, ' in ', nameElement(chat))
  return [...partyParts(from), place]
}

/** All that is known of them, under the pointer. */
export function whoHint({ excerpt }: Excerpted): string {
  const { from, chat } = excerpt ?? {}
  const parties = [from, chat?.id === from?.id ? undefined : chat]
  return parties.flatMap((party) => (party === undefined ? [] : [partyText(party)])).join(' in ')
}

/** What it is, and its first words. */
export function whatCell({ excerpt }: Excerpted): readonly Child[] {
  const { content, text } = excerpt ?? {}
  const kind = content === undefined ? undefined : content.replaceAll('_', ' ')
  const words = text === undefined ? undefined : element('bdi', {}, text)
  if (kind === undefined) return [words ?? '–']
  return [element('span', { class: 'kind' }, kind), words]
}

/** The same on one line of text, for the live tail. */
export function excerptText(excerpt: ExcerptShape): string {
  const { content = '', text = '' } = excerpt
  const what = [content.replaceAll('_', ' '), text].filter((each) => each !== '').join(': ')
  return [whoHint({ excerpt }), what].filter((each) => each !== '').join(' · ')
}

function partyParts(party: Party | undefined): readonly Child[] {
  if (party === undefined) return ['–']
  const id = element('span', { class: 'faint' }, ` ${party.id}`)
  const hasName = party.name !== undefined || party.username !== undefined
  return hasName ? [nameElement(party), id] : [party.id]
}

function nameElement({ id, name, username }: Party): HTMLElement {
  return element('bdi', {}, name ?? (username === undefined ? id : `@${username}`))
}

function partyText({ id, name, username }: Party): string {
  return [name, username === undefined ? undefined : `@${username}`, id]
    .filter((each) => each !== undefined)
    .join(' ')
}
