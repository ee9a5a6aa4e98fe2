/** Updates as people read them: with a line for each field, or who and what they are about. Pure. */
import { updateIn } from '../../api/update-in.ts'
import { formatBytes } from '../elements/format.ts'
import type { UpdateShape } from '../frame/shapes.ts'

/**
 * Returns an update with a line for each field. Only what is between its tokens changes, so each number keeps its digits:
 * JSON.parse would round large ids.
 */
export function readableUpdate(text: string): string {
  let depth = 0
  const line = (): string => `\n${'  '.repeat(depth)}`
  return text.replaceAll(tokens, (_all, token: string) => {
    switch (token) {
      case '{':
      case '[':
        depth += 1
        return `${token}${line()}`
      case '}':
      case ']':
        depth -= 1
        return `${line()}${token}`
      case ',':
        return `,${line()}`
      case ':':
        return ': '
      default:
        return token.length > 1 && !token.startsWith('"') ? token.replaceAll(/\s/g, '') : token
    }
  })
}

/** A string, an empty object or list, a sign, or a number or word; white space around it is left out. */
const tokens = /\s*("(?:[^"\\]|\\.)*"|\{\s*\}|\[\s*\]|[{}[\],:]|[^\s{}[\],:"]+)\s*/gsu

interface TailedUpdate {
  readonly updateId: number
  readonly text: string
}

/** Returns what is shown of an event of a live tail about an update. */
export function tailedUpdate(data: string): TailedUpdate {
  const event: {
    readonly update_id: number
    readonly type: string
    readonly bytes: number
    readonly excerpt?: ExcerptShape
  } = JSON.parse(data)
  const update = updateIn(data)
  const payload = update === '' ? '' : `\n${readableUpdate(update)}`
  const excerpt = event.excerpt === undefined ? '' : excerptText(event.excerpt)
  const about = excerpt === '' ? '' : `  ${excerpt}`
  return {
    updateId: event.update_id,
    text: `  ${event.type}  ${formatBytes(event.bytes)}${about}${payload}`,
  }
}

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

/** What it is, and all of its words that the server has sent. */
export function whatHint({ excerpt }: Excerpted): string {
  const { content = '', text = '' } = excerpt ?? {}
  return [content.replaceAll('_', ' '), text].filter((each) => each !== '').join(': ')
}

/** Who and what on one line, for the live tail. */
export function excerptText(excerpt: ExcerptShape): string {
  return [whoHint({ excerpt }), whatHint({ excerpt })].filter((each) => each !== '').join(' · ')
}

function partyText({ id, name, username }: ExcerptParty): string {
  return [name, username === undefined ? undefined : `@${username}`, id]
    .filter((each) => each !== undefined)
    .join(' ')
}
