import assert from 'node:assert/strict'
import { test } from 'node:test'
import { changeText } from '../../../src/api/change-text.ts'
import {
  changesBytesMax,
  keyChanges,
  settingChanges,
  type StoredSettings,
} from '../../../src/private-api/setting-changes.ts'

const before: StoredSettings = {
  bot: { firstName: 'Echo', username: 'echo_bot', secrets: [], createdAtMs: 0 },
  queue: {},
}

function changed(after: Partial<StoredSettings>): readonly string[] {
  const changes = settingChanges(before, { ...before, ...after }) ?? []
  return changes.map((each) => changeText(each))
}

test('a change of a setting has the value before and after, by the name that the API has for it', () => {
  assert.deepEqual(changed({}), [])
  assert.deepEqual(changed({ bot: { ...before.bot, firstName: 'Bell', ttlS: 60 } }), [
    'first_name: Echo -> Bell',
    'default_ttl: none -> 60',
  ])
  assert.deepEqual(changed({ queue: { isPaused: true } }), ['paused: no -> yes'])
})

test('of a secret, and of the path of a webhook, only the change is told', () => {
  const url = 'https://bot.example/4711:secret-token'
  const headers = { authorization: 'Bearer hidden' }
  const changes = settingChanges(before, {
    bot: { ...before.bot, headers },
    queue: { webhook: { url, maxConnections: 40, secretToken: 'hidden' } },
  })
  const text = JSON.stringify(changes)
  assert(!/hidden|secret-token|4711/.test(text), text)
  const moved = settingChanges(
    { ...before, queue: { webhook: { url, maxConnections: 40 } } },
    { ...before, queue: { webhook: { url: `${url}2`, maxConnections: 40 } } },
  )
  assert.deepEqual(moved, [{ field: 'webhook' }])
})

test('long values are cut, and a call has a bounded number of changes', () => {
  const long = 'x'.repeat(64)
  const [first] = changed({ bot: { ...before.bot, firstName: long } })
  assert.match(first ?? '', /^first_name: Echo -> x{47}…$/)
  const all = keyChanges(
    {},
    {
      name: long,
      scopes: ['read', 'push', 'manage'],
      bots: Array.from({ length: 1_000 }, (_, nth) => 1_000_000 + nth),
      updatesPerSecond: 1,
      requestsPerSecond: 1,
      secrets: [],
      createdAtMs: 0,
      limitSlot: 0,
    },
  )
  assert(Buffer.byteLength(JSON.stringify(all)) <= changesBytesMax + 2)
  assert(!JSON.stringify(all).includes('1000999'))
})
