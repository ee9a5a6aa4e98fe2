/** Updates as people read them. Pure. */
import { updateIn } from '../../api/update-in.ts'
import { formatBytes } from '../elements/format.ts'
import { type ExcerptShape, excerptText } from './excerpt-text.ts'

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
