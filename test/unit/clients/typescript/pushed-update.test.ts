/** What the compiler accepts and what it rejects: this file is part of the build. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Message, Update } from 'grammy/types'
import { type AnyPayloads, PostboteClient, type PushedUpdate } from 'postbote/client'

const chat = { id: 1, type: 'private', first_name: 'Ada' } as const
const message: Message & Update.NonChannel = {
  message_id: 1,
  date: 1,
  chat,
  from: { id: 1, is_bot: false, first_name: 'Ada' },
  text: 'hello',
}

test('an update has exactly one of the 22 types', () => {
  const good: readonly PushedUpdate[] = [{ message: {} }, { poll: { id: '1' } }]
  // @ts-expect-error none
  const none: PushedUpdate = {}
  // @ts-expect-error two
  const two: PushedUpdate = { message: {}, poll: {} }
  // @ts-expect-error a type of another name
  const unknown: PushedUpdate = { massage: {} }
  // @ts-expect-error the id is the server's to give
  const withId: PushedUpdate = { update_id: 1, message: {} }
  // @ts-expect-error a payload is an object
  const text: PushedUpdate = { message: 'hello' }
  assert.equal([...good, none, two, unknown, withId, text].length, 7)
})

test('payloads have the types that the user names, including those of grammY', () => {
  const good: PushedUpdate<Update> = { message }
  // @ts-expect-error a message without most of its fields
  const bad: PushedUpdate<Update> = { message: { text: 'hello' } }
  interface Mine {
    readonly message: { readonly text: string }
  }
  const own: PushedUpdate<Mine> = { message: { text: 'hello' } }
  // @ts-expect-error what is not named cannot be pushed
  const unnamed: PushedUpdate<Mine> = { poll: {} }
  // @ts-expect-error no update types
  const strange: PushedUpdate<{ massage: object }> = {}
  assert.equal([good, bad, own, unnamed, strange].length, 5)
})

test('a type that the server has added is named beside the others', () => {
  type Payloads = AnyPayloads & { readonly order: { readonly id: number } }
  const good: readonly PushedUpdate<Payloads>[] = [{ order: { id: 1 } }, { message: {} }]
  // @ts-expect-error another payload
  const bad: PushedUpdate<Payloads> = { order: { id: '1' } }
  // @ts-expect-error two types
  const two: PushedUpdate<Payloads> = { order: { id: 1 }, message: {} }
  // @ts-expect-error a type of another name
  const unknown: PushedUpdate<Payloads> = { orders: { id: 1 } }
  const alone: PushedUpdate<{ readonly order: object }> = { order: {} }
  const later: PushedUpdate<Update> = { guest_message: message }
  assert.equal([...good, bad, two, unknown, alone, later].length, 7)
})

test('a client and its streams accept the updates of its type parameter', async () => {
  const client = new PostboteClient<Update>({ key: 'key' })
  const stream = client.openStream()
  const neverCalled = async (): Promise<void> => {
    await client.push(1, { message }, { orderingKey: '1' })
    await stream.push(1, { message })
    // @ts-expect-error not a message of grammY
    await client.push(1, { message: { text: 'hello' } })
    // @ts-expect-error not a message of grammY
    await stream.push(1, { message: { text: 'hello' } })
    // @ts-expect-error a key is a text
    await client.push(1, { message }, { idempotencyKey: 1 })
    // @ts-expect-error an option of another name
    await client.push(1, { message }, { ordering_key: '1' })
    const items = [{ botId: 1, update: { message }, mine: 'kept' }]
    for await (const { item, result, error } of client.pushAll(items)) {
      assert.equal(item.mine, 'kept')
      if (error === undefined && !result.isFiltered) assert(result.updateId > 0)
    }
    const result = await client.push(1, { message })
    // @ts-expect-error only what is stored has an id
    assert(result.updateId > 0)
  }
  assert.equal(typeof neverCalled, 'function')
  await client.close()
})
