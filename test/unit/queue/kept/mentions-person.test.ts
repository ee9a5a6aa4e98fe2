import assert from 'node:assert/strict'
import { test } from 'node:test'
import { mentionsPerson } from '../../../../src/queue/kept/mentions-person.ts'

const person = 7002
const id = `${person}`
const user = { id: person, is_bot: false, first_name: 'A' }
const chat = { id: person, type: 'private' }
const other = { id: 9, is_bot: false, first_name: 'B' }
const group = { id: -1009, type: 'supergroup' }

function textOf(type: string, payload: unknown): Buffer {
  return Buffer.from(`${JSON.stringify(type)}:${JSON.stringify(payload)}`)
}

/** A message of somebody else in a group, with one more field. */
function messageWith(field: string, value: unknown): [string, unknown] {
  return ['message', { message_id: 1, from: other, chat: group, [field]: value }]
}

const naming: readonly [type: string, payload: unknown][] = [
  messageWith('from', user),
  messageWith('chat', chat),
  messageWith('sender_chat', chat),
  messageWith('sender_business_bot', user),
  messageWith('via_bot', user),
  messageWith('new_chat_member', user),
  messageWith('new_chat_members', [other, user]),
  messageWith('left_chat_member', user),
  messageWith('forward_from', user),
  messageWith('forward_from_chat', chat),
  messageWith('forward_origin', { type: 'user', sender_user: user }),
  messageWith('forward_origin', { type: 'chat', sender_chat: chat }),
  messageWith('forward_origin', { type: 'channel', chat, message_id: 4 }),
  messageWith('external_reply', { origin: { type: 'user', sender_user: user }, chat: group }),
  messageWith('reply_to_message', { message_id: 2, chat: group, from: user }),
  messageWith('reply_to_message', { message_id: 2, pinned_message: { from: user } }),
  messageWith('reply_to_story', { id: 3, chat }),
  messageWith('story', { chat, id: 3 }),
  messageWith('contact', { phone_number: '1', user_id: person }),
  messageWith('users_shared', { request_id: 1, users: [{ user_id: 9 }, { user_id: person }] }),
  messageWith('users_shared', { request_id: 1, user_ids: [9, person] }),
  messageWith('user_shared', { request_id: 1, user_id: person }),
  messageWith('chat_shared', { request_id: 1, chat_id: person }),
  messageWith('migrate_to_chat_id', person),
  messageWith('migrate_from_chat_id', person),
  messageWith('entities', [{ type: 'text_mention', offset: 0, length: 1, user }]),
  messageWith('caption_entities', [{ type: 'text_mention', offset: 0, length: 1, user }]),
  messageWith('quote', { text: 'a', entities: [{ type: 'text_mention', user }] }),
  messageWith('proximity_alert_triggered', { traveler: user, watcher: other, distance: 1 }),
  messageWith('proximity_alert_triggered', { traveler: other, watcher: user, distance: 1 }),
  messageWith('video_chat_participants_invited', { users: [user] }),
  messageWith('giveaway', { chats: [group, chat], winner_count: 1 }),
  messageWith('giveaway_winners', { chat: group, winners: [other, user] }),
  messageWith('checklist', { title: 't', tasks: [{ id: 1, text: 'x', completed_by_user: user }] }),
  messageWith('unique_gift', { gift: { publisher_chat: chat }, origin: 'x' }),
  ['edited_message', { message_id: 1, from: user, chat: group }],
  ['channel_post', { message_id: 1, sender_chat: chat, chat: group }],
  ['callback_query', { id: '1', from: user, message: { chat: group } }],
  ['callback_query', { id: '1', from: other, message: { message_id: 1, chat } }],
  ['inline_query', { id: '1', from: user, query: '' }],
  ['chosen_inline_result', { result_id: '1', from: user, query: '' }],
  ['shipping_query', { id: '1', from: user }],
  ['pre_checkout_query', { id: '1', from: user, total_amount: 1 }],
  ['purchased_paid_media', { from: user, paid_media_payload: '' }],
  ['poll_answer', { poll_id: '1', user, option_ids: [] }],
  ['poll_answer', { poll_id: '1', voter_chat: chat, option_ids: [] }],
  ['message_reaction', { chat: group, message_id: 1, user }],
  ['message_reaction', { chat: group, message_id: 1, actor_chat: chat }],
  ['chat_member', { chat: group, from: other, old_chat_member: { status: 'left', user } }],
  ['chat_member', { chat: group, from: other, invite_link: { creator: user } }],
  ['my_chat_member', { chat, from: other }],
  ['chat_join_request', { chat: group, from: other, user_chat_id: person }],
  ['chat_boost', { chat: group, boost: { boost_id: 'a', source: { source: 'premium', user } } }],
  ['removed_chat_boost', { chat, boost_id: 'a' }],
  ['business_connection', { id: 'a', user, user_chat_id: 9 }],
  ['business_message', { business_connection_id: 'a', chat }],
  ['deleted_business_messages', { business_connection_id: 'a', chat, message_ids: [1] }],
  ['something_new', { guests: [{ card: { bearer: user } }] }],
  ['something_new', { invited_by_user_id: person }],
]

const others: readonly [type: string, payload: unknown][] = [
  messageWith('message_id', person),
  messageWith('message_thread_id', person),
  messageWith('date', person),
  messageWith('text', `call ${person}, "id":${person}`),
  messageWith('story', { chat: group, id: person }),
  messageWith('reply_to_story', { chat: group, id: person }),
  messageWith('checklist', { tasks: [{ id: person, text: 'x' }] }),
  messageWith('checklist_tasks_done', { marked_as_done_task_ids: [person] }),
  messageWith('users_shared', { request_id: person, user_ids: [9] }),
  messageWith('contact', { phone_number: id, user_id: 9 }),
  messageWith('media_group_id', id),
  messageWith('from', { ...other, username: id }),
  messageWith('from', { id: Number(`${id}1`) }),
  messageWith('from', { id: Number(`1${id}`) }),
  messageWith('from', { id: -person }),
  ['callback_query', { id, from: other, inline_message_id: id, chat_instance: id, data: id }],
  ['poll', { id, options: [{ text: id, voter_count: person }] }],
  ['poll_answer', { poll_id: id, user: other, option_ids: [person] }],
  ['pre_checkout_query', { id, from: other, total_amount: person }],
  ['deleted_business_messages', { chat: group, message_ids: [person] }],
  ['something_new', { id: person, from: other }],
]

function messageOf(fields: string): Buffer {
  return Buffer.from(`"message":{"message_id":1,${fields}}`)
}

function costNs(text: Buffer): number {
  const startNs = process.hrtime.bigint()
  mentionsPerson(text, id)
  return Number(process.hrtime.bigint() - startNs)
}

test('an update names a person wherever the Bot API has a user or a chat, and where a later version may', () => {
  for (const [type, payload] of naming) {
    assert(mentionsPerson(textOf(type, payload), id), `${type} ${JSON.stringify(payload)}`)
    // The same with another person in the same place.
    const text = Buffer.from(textOf(type, payload).toString().replaceAll(id, '7003'))
    assert(!mentionsPerson(text, id), String(text))
  }
})

test('ids of messages, tasks, stories, queries and polls, texts and other ids are no person', () => {
  for (const [type, payload] of others) {
    assert(!mentionsPerson(textOf(type, payload), id), `${type} ${JSON.stringify(payload)}`)
  }
})

test('all digits of an id count, and its sign, however the JSON is written', () => {
  const big = '4503599627370495'
  for (const [text, wanted, isNamed] of [
    [`"chat":{"id":-${big}}`, `-${big}`, true],
    [`"chat":{"id":-${big}}`, big, false],
    [`"from":{"id":9007199254740993}`, '9007199254740992', false],
    [`"from" : { "first_name":"a" ,\n"id"\t:  7002 }`, id, true],
    [`"from":{"i\\u0064":7002}`, id, true],
    [`"from":{"id":7002.0}`, id, true],
    [`"from":{"first_name":"\\"}","id":7002}`, id, true],
    [`"from":{"id":7002},"from":{"id":8}`, id, true],
    [`"from":{"id":8,"id":7002}`, id, true],
    [`"users":[{"a":[]},[{"id":7002}]]`, id, true],
    [`"from":{"id":"7002"}`, id, false],
    [`"story":{"from":{"a":1},"id":7002}`, id, false],
  ] as const) {
    assert.equal(mentionsPerson(messageOf(text), wanted), isNamed, text)
  }
})

test('the cost grows with the length of a text, whatever is in it', () => {
  const shorter = 1 << 12
  const times = 64
  for (const unit of ['[', '{"id":', '7', '-', '"', '"\\', '7002 ', '"user_id":', '"id":7002,']) {
    const textOfBytes = (bytes: number): Buffer =>
      Buffer.from(`"message":{"a":7002,"b":${unit.repeat(bytes / unit.length)}`)
    const [one, many] = [textOfBytes(shorter), textOfBytes(shorter * times)]
    const costs = Array.from({ length: 7 }, () => ({ oneNs: costNs(one), manyNs: costNs(many) }))
    // A busy machine makes single runs long, and the shortest ones little. A quadratic cost would be 64 times as much again.
    const leastNs = Math.min(...costs.map(({ oneNs }) => oneNs))
    const mostNs = leastNs * times * 16
    const manyNs = Math.min(...costs.map((cost) => cost.manyNs))
    assert(manyNs < mostNs, `${unit}: ${leastNs} ns, and ${manyNs} ns for ${times} times as much`)
  }
})
