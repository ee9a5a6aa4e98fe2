/**
 * Derives the ordering key of an update (protocol.md §8). A bot's updates with the same key keep their order.
 *
 * A derived key is the letter of its class followed by the id from the payload: `m-1001234` for chat -1001234. A
 * producer's own key is stored as `=` and its text, so it never equals a derived key. '' is the bot's common key, for an
 * update in which no id was found. Keys are stored with their updates: do not change the letters.
 *
 * Ids keep the digits they were sent with, so ids above 2^53 stay distinct; JSON.parse would lose those digits. Of members with
 * the same key the last one counts, as in the JSON parsers of bots.
 */
import { producerKey } from '../../shard/update-rows.ts'
import { createHash } from 'node:crypto'
import { orderingKeyBytesMax } from '../../kit/limits.ts'
import { findLastMember, numberText, skipSpace, skipString, skipValue } from './json-scan.ts'
import type { AddedType } from '../../kit/added-type.ts'
import { addedTypes, byType, type UpdateType } from '../../kit/update-types.ts'

interface OrderingClass {
  readonly letter: string
  /** The places of the ids in the payload. If there are several, the key consists of all of them. */
  readonly paths: readonly (readonly Buffer[])[]
}

const posts = orderingClass('m', 'chat.id')
const business = orderingClass('b', 'business_connection_id', 'chat.id')
const queries = orderingClass('q', 'from.id')
const boosts = orderingClass('o', 'chat.id')

const classOf: Record<UpdateType, OrderingClass> = {
  message: posts,
  edited_message: posts,
  channel_post: posts,
  edited_channel_post: posts,
  business_message: business,
  edited_business_message: business,
  deleted_business_messages: business,
  callback_query: queries,
  inline_query: queries,
  chosen_inline_result: queries,
  shipping_query: queries,
  pre_checkout_query: queries,
  // These two share a class because a request to join and the resulting membership concern the same person.
  chat_join_request: orderingClass('c', 'from.id'),
  chat_member: orderingClass('c', 'new_chat_member.user.id'),
  my_chat_member: orderingClass('y', 'chat.id'),
  poll: orderingClass('p', 'id'),
  poll_answer: orderingClass('a', 'poll_id'),
  business_connection: orderingClass('u', 'user.id'),
  chat_boost: boosts,
  removed_chat_boost: boosts,
  message_reaction_count: orderingClass('n', 'chat.id'),
  message_reaction: orderingClass('r', 'chat.id'),
}

/** The letters of added types, by their places in the list of them. Stored, too: do not change. */
const addedLetters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZdefghijklstvwxz0'

/** Returns the letter of the added types with a path: they share their keys, whose letter is that of the first of them. */
export function letterOfPath(keyPath: string | undefined, types: readonly AddedType[]): string {
  return addedLetters.charAt(types.findIndex((type) => type.keyPath === keyPath))
}

/** A type without a path has no keys. */
function addedClass({ keyPath }: AddedType): OrderingClass {
  const letter = letterOfPath(keyPath, addedTypes())
  return keyPath === undefined ? { letter, paths: [] } : orderingClass(letter, keyPath)
}

const classByNumber = byType((type) => classOf[type], addedClass)

/** For each type, the paths of the ids in its payload, such as `chat.id`. */
export const idPaths = byType(
  (type) => pathsOf(classOf[type]),
  (type) => pathsOf(addedClass(type)),
)

/** For each type, the first character of its keys. */
export const keyLetters = byType(
  (type) => classOf[type].letter,
  (type) => addedClass(type).letter,
)

/** The longest id that is part of a key as it is, in UTF-16 code units. */
export const idLengthMax = Math.floor(orderingKeyBytesMax / 3)

/**
 * Derives the ordering key of an accepted update. Never throws.
 *
 * @param typeNumber - the index of the update's type in `updateTypes`
 * @param text - the update's text, `"<type>":{...}`, already checked
 * @returns the class letter and the id, or '' if the payload has no such id. A business key has two ids, joined by `/`.
 */
export function deriveOrderingKey(typeNumber: number, text: Buffer): string {
  const own = classByNumber[typeNumber]
  if (own === undefined) return ''
  const payload = skipSpace(text, skipSpace(text, skipString(text, 0)) + 1)
  const [onlyPath, secondPath] = own.paths
  const id = onlyPath === undefined ? '' : idAt(text, payload, onlyPath)
  const secondId = secondPath === undefined ? '' : idAt(text, payload, secondPath)
  if (id === '' && secondId === '') return ''
  return secondPath === undefined ? own.letter + id : `${own.letter}${id}/${secondId}`
}

/** Returns whom a stored key stands for; undefined for what a producer has chosen, and for polls and what else is neither. */
export function subjectOfKey(storedKey: string): KeySubject | undefined {
  return subjectByLetter.get(storedKey.charAt(0))
}

/** Returns whom a stored key stands for with the id, such as `chat 42`; undefined as above. */
export function subjectTextOf(storedKey: string): string | undefined {
  const subject = subjectOfKey(storedKey)
  const id = storedKey.slice(storedKey.lastIndexOf('/') + 1).replace(/^[a-z]/, '')
  return subject === undefined || id === '' ? undefined : `${subject} ${id}`
}

type KeySubject = 'chat' | 'user'

const subjectByLetter: ReadonlyMap<string, KeySubject | undefined> = new Map(
  Object.values(classOf).map(({ letter, paths }) => [letter, subjectAt(paths.at(-1) ?? [])]),
)

/** The last id of a key with several says whose it is. */
function subjectAt(path: readonly Buffer[]): KeySubject | undefined {
  const [owner] = path.map(String).slice(-2)
  if (owner === 'chat') return 'chat'
  return owner === 'from' || owner === 'user' ? 'user' : undefined
}

/**
 * Returns what finds the stored keys that a person means.
 *
 * @param text - a key as its producer has pushed it, as it is stored, or the path and the value of an id that keys are
 *   derived from, such as `chat.id=42`, which finds the keys of all types that have this id there
 */
export function keysMeantBy(text: string): (storedKey: string) => boolean {
  const exact = new Set([text, producerKey(text)])
  const equals = text.indexOf('=')
  const path = text.slice(0, Math.max(equals, 0))
  const id = bounded(text.slice(equals + 1))
  const pairs: { readonly letter: string; readonly place: number }[] = []
  for (const { letter, paths } of new Set(classByNumber)) {
    const place = paths.findIndex((names) => names.map(String).join('.') === path)
    if (id === '' || place === -1) continue
    if (paths.length === 1) exact.add(letter + id)
    else pairs.push({ letter, place })
  }
  return (key) =>
    exact.has(key) ||
    pairs.some(({ letter, place }) => key[0] === letter && key.slice(1).split('/')[place] === id)
}

function orderingClass(letter: string, ...paths: readonly string[]): OrderingClass {
  return { letter, paths: paths.map(namesOf) }
}

function pathsOf({ paths }: OrderingClass): readonly string[] {
  return paths.map((names) => names.map(String).join('.'))
}

function namesOf(path: string): Buffer[] {
  return path.split('.').map((name) => Buffer.from(name))
}

/** Returns the text of the id at the end of `path`, or '' if there is neither a number nor a string. */
function idAt(text: Buffer, payload: number, path: readonly Buffer[]): string {
  let at = payload
  for (const name of path) {
    at = findLastMember(text, at, name)
    if (at < 0) return ''
  }
  const first = text[at]
  const end = skipValue(text, at)
  if (first === 0x22) return bounded(stringAt(text, at, end))
  const isNumber = first === 0x2d || (first !== undefined && first >= 0x30 && first <= 0x39)
  return isNumber ? bounded(numberText(text, at, end)) : ''
}

function stringAt(text: Buffer, start: number, end: number): string {
  const content = text.toString('utf8', start + 1, end - 1)
  if (!content.includes('\\')) return content
  const parsed: unknown = JSON.parse(text.toString('utf8', start, end))
  return typeof parsed === 'string' ? parsed : ''
}

/** Replaces a very long id by its hash, because a key is stored with every update and kept in memory. */
function bounded(id: string): string {
  if (id.length <= idLengthMax) return id
  return createHash('sha256').update(id).digest('base64url')
}
