/**
 * The fields that bot frameworks need to decode an update: those that the Telegram Bot API does not mark as optional
 * (https://core.telegram.org/bots/api#available-types), down to the users and chats in them. Some frameworks, such as
 * python-telegram-bot, throw while they decode an update without them. They never confirm it, so they get it again at each start.
 *
 * The server never needs these fields. It checks them only if the producer or the bot asks for it (`validate=telegram`,
 * protocol.md §4.2), because a platform may leave out what its own bots do not read.
 */
import type { ReferenceVersion, typesOfReference } from '../../kit/added-type.ts'
import { PostboteError } from '../../kit/errors.ts'
import { updateTypes, type UpdateType } from '../../kit/update-types.ts'

/** What a field must be. An object has fields in turn; one whose name ends with `?` may be absent. */
type Shape = 'an integer' | 'a string' | 'a boolean' | 'an array' | Fields
interface Fields {
  readonly [name: string]: Shape
}

const user = { id: 'an integer', is_bot: 'a boolean', first_name: 'a string' } as const
const chat = { id: 'an integer', type: 'a string' } as const
const message = { message_id: 'an integer', date: 'an integer', chat, 'from?': user } as const
const member = { user, status: 'a string' } as const
const memberChange = {
  chat,
  from: user,
  date: 'an integer',
  old_chat_member: member,
  new_chat_member: member,
} as const
const query = { id: 'a string', from: user } as const
const source = { source: 'a string' } as const

/** The names of the types that later versions of the reference have. */
type NewerType = (typeof typesOfReference)[ReferenceVersion][number]['name']

const fieldsOf: Readonly<Record<UpdateType | NewerType, Fields>> = {
  message,
  edited_message: message,
  channel_post: message,
  edited_channel_post: message,
  business_message: message,
  edited_business_message: message,
  deleted_business_messages: {
    business_connection_id: 'a string',
    chat,
    message_ids: 'an array',
  },
  callback_query: {
    ...query,
    chat_instance: 'a string',
    // A message that the bot cannot read has a date of 0, and is complete, too.
    'message?': message,
  },
  inline_query: { ...query, query: 'a string', offset: 'a string' },
  chosen_inline_result: { result_id: 'a string', from: user, query: 'a string' },
  chat_join_request: { chat, from: user, user_chat_id: 'an integer', date: 'an integer' },
  chat_member: memberChange,
  my_chat_member: memberChange,
  shipping_query: {
    ...query,
    invoice_payload: 'a string',
    shipping_address: {
      country_code: 'a string',
      state: 'a string',
      city: 'a string',
      street_line1: 'a string',
      street_line2: 'a string',
      post_code: 'a string',
    },
  },
  pre_checkout_query: {
    ...query,
    currency: 'a string',
    total_amount: 'an integer',
    invoice_payload: 'a string',
  },
  poll: {
    id: 'a string',
    question: 'a string',
    options: 'an array',
    total_voter_count: 'an integer',
    is_closed: 'a boolean',
    is_anonymous: 'a boolean',
    type: 'a string',
    allows_multiple_answers: 'a boolean',
  },
  poll_answer: { poll_id: 'a string', option_ids: 'an array', 'user?': user, 'voter_chat?': chat },
  business_connection: {
    id: 'a string',
    user,
    user_chat_id: 'an integer',
    date: 'an integer',
    is_enabled: 'a boolean',
  },
  chat_boost: {
    chat,
    boost: {
      boost_id: 'a string',
      add_date: 'an integer',
      expiration_date: 'an integer',
      source,
    },
  },
  removed_chat_boost: { chat, boost_id: 'a string', remove_date: 'an integer', source },
  message_reaction_count: {
    chat,
    message_id: 'an integer',
    date: 'an integer',
    reactions: 'an array',
  },
  message_reaction: {
    chat,
    message_id: 'an integer',
    date: 'an integer',
    old_reaction: 'an array',
    new_reaction: 'an array',
    'user?': user,
    'actor_chat?': chat,
  },
  purchased_paid_media: { from: user, paid_media_payload: 'a string' },
  managed_bot: { user, bot: user },
  guest_message: message,
  // These two have no known form.
  custom_event: {},
  custom_query: {},
}

const fieldsByName: ReadonlyMap<string, Fields> = new Map(Object.entries(fieldsOf))

/**
 * Checks that an update has the fields that bot frameworks need.
 *
 * @param text - the text of a checked update: `"message":{...}`
 * @throws BAD_UPDATE that names the first field that is missing or wrong, and what is expected.
 */
export function assertTelegramFields(typeNumber: number, text: Buffer): void {
  const type = updateTypes[typeNumber] ?? 'message'
  const update: Readonly<Record<string, unknown>> = JSON.parse(`{${text.toString()}}`)
  const problem = problemIn(fieldsByName.get(type) ?? {}, update[type], type)
  if (problem === undefined) return
  throw new PostboteError('BAD_UPDATE', { detail: `${problem}, which bot frameworks need` })
}

function problemIn(shape: Shape, value: unknown, path: string): string | undefined {
  if (typeof shape === 'string') return isA(shape, value) ? undefined : missing(shape, path)
  if (!isRecord(value)) return missing('an object', path)
  for (const [field, inner] of Object.entries(shape)) {
    const name = field.replace('?', '')
    if (name !== field && (value[name] === undefined || value[name] === null)) continue
    const problem = problemIn(inner, value[name], `${path}.${name}`)
    if (problem !== undefined) return problem
  }
  return undefined
}

function missing(expected: string, path: string): string {
  return `expected ${expected} as ${path}`
}

function isA(shape: Exclude<Shape, Fields>, value: unknown): boolean {
  if (shape === 'an integer') return Number.isInteger(value)
  if (shape === 'an array') return Array.isArray(value)
  return typeof value === (shape === 'a string' ? 'string' : 'boolean')
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
