/** Who and what an update is about, as text. Pure. */
import type { UpdateShape } from '../frame/shapes.ts'

/** A server of an earlier version sends none. */
export type ExcerptShape = NonNullable<UpdateShape['excerpt']>
/** A row of a list. */
export interface Excerpted {
  readonly excerpt?: ExcerptShape | undefined
}

export type ExcerptParty = NonNullable<ExcerptShape['from']>

/** All that is known of them, under the pointer. */
export function whoHint({ excerpt }: Excerpted): string {
  const { from, chat } = excerpt ?? {}
  const parties = [from, chat?.id === from?.id ? undefined : chat]
  return parties.flatMap((party) => (party === undefined ? [] : [partyText(party)])).join(' in ')
}

/** Who and what on one line, for the live tail. */
export function excerptText(excerpt: ExcerptShape): string {
  const { content = '', text = '' } = excerpt
  const what = [content.replaceAll('_', ' '), text].filter((each) => each !== '').join(': ')
  return [whoHint({ excerpt }), what].filter((each) => each !== '').join(' · ')
}

function partyText({ id, name, username }: ExcerptParty): string {
  return [name, username === undefined ? undefined : `@${username}`, id]
    .filter((each) => each !== undefined)
    .join(' ')
}
