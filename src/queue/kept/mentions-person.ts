/**
 * Tells whether an update names a person or a chat, by its id, at any depth.
 *
 * The Bot API has a hundred places for users and chats, and each version adds some. A list of them would miss the next one,
 * and an erasure would leave what it promises to remove. So everything that looks like one counts:
 *
 *     "<any name>":{...,"id":42,...}   an object, or one of a list, whose id is this number, unless its name says that it
 *                                      is something else that is numbered, such as a task of a checklist
 *     "<...>user_id":42                a number, or one of a list, whose name ends in user_id, chat_id, user_ids or chat_ids
 *
 * The payload itself is no person, so an id directly in it does not count. Ids in strings do not either: those are of queries,
 * polls and files. Every member counts of two with one name, since the bytes have both.
 */
import { numberText, skipSpace, skipString, skipValue } from '../check/json-scan.ts'

const quote = 0x22
const colon = 0x3a
const minus = 0x2d
const openBrace = 0x7b
const closeBrace = 0x7d
const openBracket = 0x5b
const closeBracket = 0x5d

/** An object or a list that the scan is in. */
interface Container {
  /** The name that it has; that of the list for what is in a list. */
  readonly name: string
  readonly isList: boolean
}

/** The last word of the names of things that have a number for an id, and are neither a user nor a chat. */
const numbered =
  /(?:^|_)(?:boost|file|gift|message|option|poll|query|sticker|story|stories|task|thread|topic)s?$/
const idField = /(?:^|_)(?:user|chat)_ids?$/

/**
 * @param text - of an update as it is stored, `"<type>":{...}`
 * @param id - of the user or the chat, in digits. Compared as text, so that no two ids are taken for one
 */
export function mentionsPerson(text: Buffer, id: string): boolean {
  // Most updates are of others, and this costs far less than the scan.
  if (!text.includes(id)) return false
  const open: Container[] = []
  let name = ''
  for (let at = 0; at < text.length; ) {
    const byte = text[at] ?? 0
    if (byte === quote) {
      const end = skipString(text, at)
      const after = skipSpace(text, end)
      if (text[after] === colon) name = nameAt(text, at, end)
      at = after
    } else if (isNumber(byte)) {
      const end = skipValue(text, at)
      if (isIdField(name, open) && numberText(text, at, end) === id) return true
      at = end
    } else {
      enterOrLeave(open, byte, name)
      at++
    }
  }
  return false
}

function enterOrLeave(open: Container[], byte: number, name: string): void {
  const isList = byte === openBracket
  if (isList || byte === openBrace) {
    const inside = open.at(-1)
    const list = inside?.isList === true ? inside : undefined
    // A list in a list is as the outer one, so that one object stands for all of them, however deep they are.
    open.push(isList && list ? list : { name: list?.name ?? name, isList })
  } else if (byte === closeBrace || byte === closeBracket) {
    open.pop()
  }
}

/** Whether a number is in a place for the id of a user or a chat. */
function isIdField(name: string, open: readonly Container[]): boolean {
  const inside = open.at(-1)
  if (inside?.isList === true) return idField.test(inside.name)
  if (name !== 'id') return idField.test(name)
  return inside !== undefined && open.length > 1 && !numbered.test(inside.name)
}

function isNumber(byte: number): boolean {
  return byte === minus || (byte >= 0x30 && byte <= 0x39)
}

/** Returns the name between quotes. One that is written with escapes is the same name. */
function nameAt(text: Buffer, start: number, end: number): string {
  const name = text.toString('latin1', start + 1, end - 1)
  if (!name.includes('\\')) return name
  return String(JSON.parse(text.toString('utf8', start, end)))
}
