import assert from 'node:assert/strict'
import { test } from 'node:test'
import { assertTelegramFields } from '../../../../src/queue/check/telegram-fields.ts'
import { updateTypes } from '../../../../src/kit/update-types.ts'
import { checkUpdate } from '../../../support/producers/update-verdict.ts'

function problemOf(update: object): string | undefined {
  const { typeNumber, text } = checkUpdate(Buffer.from(JSON.stringify(update)))
  try {
    assertTelegramFields(typeNumber, text)
    return undefined
  } catch (error) {
    assert(error instanceof Error)
    return error.message
  }
}

const chat = { id: 42, type: 'private' }
const message = { message_id: 1, date: 1_700_000_000, chat }

test('a message needs its id, its date, and the id and type of its chat, but no sender', () => {
  assert.equal(problemOf({ message }), undefined)
  for (const field of ['message_id', 'date', 'chat'] as const) {
    const { [field]: _left, ...rest } = message
    assert(problemOf({ message: rest })?.includes(`as message.${field},`))
  }
  assert.equal(
    problemOf({ message: { ...message, chat: { id: 42 } } }),
    'Bad update: expected a string as message.chat.type, which bot frameworks need',
  )
  assert(problemOf({ message: { ...message, date: '1700000000' } })?.includes('an integer'))
})

test('an optional field is checked if it is there, and null counts as absent', () => {
  assert.equal(problemOf({ message: { ...message, from: null } }), undefined)
  const from = { id: 42, is_bot: false }
  assert(problemOf({ message: { ...message, from } })?.includes('as message.from.first_name,'))
})

test('every type needs some fields', () => {
  for (const type of updateTypes) {
    assert(problemOf({ [type]: {} })?.includes(` as ${type}.`), type)
  }
})

test('a name that every object has is missing, too', () => {
  assert(problemOf({ poll: JSON.parse('{"__proto__":{"id":"7"}}') })?.includes('as poll.id,'))
})
