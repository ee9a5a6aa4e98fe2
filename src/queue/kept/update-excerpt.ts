/**
 * Who and what an update is about, in a few words, for lists of many updates: a list with whole payloads would be too large for its
 * reader. It is made of the bytes when it is asked for, and stored nowhere, so what is erased leaves none behind.
 *
 * The Bot API gives the same names to the same things in all types, so a type that comes later has its excerpt, too. Ids keep
 * their digits: they are texts.
 */
import { eachMember, numberText, skipSpace, skipString, skipValue } from '../check/json-scan.ts'

/** A user or a chat. */
export interface ExcerptParty {
  /** In digits. */
  readonly id: string
  /** The title, or the first and the last name. */
  readonly name?: string
  readonly username?: string
}

export interface UpdateExcerpt {
  readonly from?: ExcerptParty
  readonly chat?: ExcerptParty
  /** What it has beside text, such as `photo`. */
  readonly content?: string
  /** Its first words: of the text, the caption, the data or the query. */
  readonly text?: string
}

/** An excerpt has this many characters of a text. Chosen: a line of a table. */
export const excerptTextLengthMax = 80
/** A name has this many characters. Chosen: as first names may have. */
const nameLengthMax = 64
/** A character of JSON takes up to twelve bytes, as an escaped pair of surrogates. */
const bytesPerCharacterMax = 12
/** Longer names of members are none that an excerpt knows. */
const memberBytesMax = 40

const quote = 0x22
const backslash = 0x5c
const openBrace = 0x7b

/** Where the words are, the first that is there. */
const textNames = words('text caption data query question invoice_payload emoji')
const fromNames = words('from sender_chat user actor_chat voter_chat')
/** What a message may have in place of text. One that comes with others stands before them: a venue has a location. */
const contentNames = words(
  `animation venue photo video audio voice video_note sticker document paid_media story contact location poll dice game
  checklist invoice successful_payment refunded_payment web_app_data users_shared chat_shared pinned_message new_chat_members
  left_chat_member new_chat_title new_chat_photo delete_chat_photo group_chat_created supergroup_chat_created
  channel_chat_created migrate_to_chat_id migrate_from_chat_id giveaway forum_topic_created video_chat_started
  video_chat_ended boost_added gift`,
)
const otherNames = words('message new_chat_member new_reaction chat')
const payloadNames = new Set([textNames, fromNames, contentNames, otherNames].flat())
const partyNames = new Set(['id', 'title', 'first_name', 'last_name', 'username'])

/** The positions of the values of an object, by their names. */
type Places = ReadonlyMap<string, number>

/** @param text - of an update as it is stored, `"<type>":{...}` */
export function excerptOf(text: Buffer): UpdateExcerpt {
  const payload = skipSpace(text, skipSpace(text, skipString(text, 0)) + 1)
  const own = placesIn(text, payload, payloadNames)
  // The button of a callback query is below a message, and its chat is that of the message.
  const message = placesIn(text, own.get('message') ?? -1, payloadNames)
  const from = partyAt(text, firstOf(own, fromNames))
  const chat = partyAt(text, own.get('chat') ?? message.get('chat') ?? -1)
  const content = contentOf(text, own)
  const said = wordsOf(text, own)
  return {
    ...(from === undefined ? {} : { from }),
    ...(chat === undefined ? {} : { chat }),
    ...(content === undefined ? {} : { content }),
    ...(said === '' ? {} : { text: said }),
  }
}

function contentOf(text: Buffer, own: Places): string | undefined {
  if (own.has('new_reaction')) return 'reaction'
  const status = placesIn(text, own.get('new_chat_member') ?? -1, new Set(['status']))
  const member = stringAt(text, status.get('status'), nameLengthMax)
  return member === '' ? contentNames.find((name) => own.has(name)) : member
}

function wordsOf(text: Buffer, own: Places): string {
  const inside = ['poll', 'sticker', 'dice'].map((name) => own.get(name) ?? -1)
  const texts = [own, ...inside.map((at) => placesIn(text, at, payloadNames))]
  for (const places of texts) {
    const found = stringAt(text, firstOf(places, textNames), excerptTextLengthMax)
    if (found !== '') return found
  }
  return ''
}

function partyAt(text: Buffer, at: number): ExcerptParty | undefined {
  const places = placesIn(text, at, partyNames)
  const idAt = places.get('id')
  if (idAt === undefined) return undefined
  const id = numberText(text, idAt, Math.min(skipValue(text, idAt), idAt + nameLengthMax))
  const said = (name: string): string => stringAt(text, places.get(name), nameLengthMax)
  const name = said('title') || `${said('first_name')} ${said('last_name')}`.trim()
  const username = said('username')
  return {
    id,
    ...(name === '' ? {} : { name }),
    ...(username === '' ? {} : { username }),
  }
}

function firstOf(places: Places, names: readonly string[]): number {
  const name = names.find((each) => places.has(each))
  return name === undefined ? -1 : (places.get(name) ?? -1)
}

/** Of two members with one name the last one counts, as in the JSON parsers of bots. */
function placesIn(text: Buffer, open: number, names: ReadonlySet<string>): Places {
  const places = new Map<string, number>()
  if (text[open] !== openBrace) return places
  eachMember(text, open, ({ start, end }, value) => {
    if (end - start > memberBytesMax) return
    const name = text.toString('latin1', start, end)
    if (names.has(name)) places.set(name, value)
  })
  return places
}

/** Returns the beginning of a string on one line; '' if there is none. */
function stringAt(text: Buffer, at: number | undefined, lengthMax: number): string {
  if (at === undefined || text[at] !== quote) return ''
  const end = skipString(text, at) - 1
  const cut = Math.min(
    end,
    wholeUntil(text, at + 1, at + 1 + (lengthMax + 1) * bytesPerCharacterMax),
  )
  const parsed: unknown = JSON.parse(`"${text.toString('utf8', at + 1, cut)}"`)
  const line = String(parsed).replaceAll(/\s+/gu, ' ').trim()
  const characters = Array.from(line)
  const isCut = cut < end || characters.length > lengthMax
  return isCut ? `${characters.slice(0, lengthMax - 1).join('')}…` : line
}

/** Returns the last position up to `end` that is in no escape. */
function wholeUntil(text: Buffer, start: number, end: number): number {
  let at = start
  while (at < end && at < text.length) {
    const length = text[at] !== backslash ? 1 : text[at + 1] === 0x75 ? 6 : 2
    if (at + length > end) return at
    at += length
  }
  return at
}

function words(text: string): readonly string[] {
  return text.split(/\s+/)
}
