/**
 * The 22 update types and sets of them. The numbers of the types are stored in every `u` record and in allowed_updates
 * masks: append new types at the end and never renumber. What a new type needs:
 *
 *   here                  its name at the end of `updateTypes`, and in `defaultTypesMask` if bots must ask for it. A bot that
 *                         has set allowed_updates has its mask on disk and gets the new type only after it asks again;
 *                         all others get what the default says. 31 types fit into a mask.
 *   check-update.ts       nothing, unless another type has its length and first letter: the module says so when it is loaded
 *   ordering-key.ts       its class, without which nothing compiles; the native check gets names and paths from both
 *   time-to-live.ts       its time to live, if that is not the usual one
 *   telegram-fields.ts    the fields that its payload must have
 *   docs/use/protocol.md  its row in the table of update types; the tests of the pages compare them
 */

/** The names of the types. A type's index is its number. */
export const updateTypes = [
  'message', // 0
  'edited_message', // 1
  'channel_post', // 2
  'edited_channel_post', // 3
  'business_message', // 4
  'edited_business_message', // 5
  'deleted_business_messages', // 6
  'callback_query', // 7
  'inline_query', // 8
  'chosen_inline_result', // 9
  'chat_join_request', // 10
  'chat_member', // 11
  'my_chat_member', // 12
  'shipping_query', // 13
  'pre_checkout_query', // 14
  'poll', // 15
  'poll_answer', // 16
  'business_connection', // 17
  'chat_boost', // 18
  'removed_chat_boost', // 19
  'message_reaction_count', // 20
  'message_reaction', // 21
] as const

/** The name of an update type. */
export type UpdateType = (typeof updateTypes)[number]

/** Maps the name of a type to its index in `updateTypes`. */
export const updateTypeNumber: ReadonlyMap<string, number> = new Map(
  updateTypes.map((type, index) => [type, index]),
)

/** A set of update types as one integer: bit N stands for type number N. */
export type TypeMask = number

if (updateTypes.length > 31) {
  throw new Error(
    'a mask has bits for 31 update types: store masks in another form before you add one',
  )
}

/** Returns the mask of these types. */
export function maskOf(types: Iterable<UpdateType>): TypeMask {
  let mask = 0
  for (const type of types) mask |= 1 << updateTypes.indexOf(type)
  return mask
}

/** The mask of all 22 types. */
export const allTypesMask: TypeMask = (1 << updateTypes.length) - 1

/** The types that a bot receives until it sets allowed_updates: all but five. */
export const defaultTypesMask: TypeMask =
  allTypesMask &
  ~maskOf([
    'chat_member',
    'message_reaction',
    'message_reaction_count',
    'chat_boost',
    'removed_chat_boost',
  ])

/** Returns the types in a mask, in the order of their numbers. */
export function typesOf(mask: TypeMask): UpdateType[] {
  return updateTypes.filter((_type, index) => (mask & (1 << index)) !== 0)
}
