import assert from 'node:assert/strict'
import { test } from 'node:test'
import { hasWords, rankOf, searchOf } from '../../../../src/page/frame/search-of.ts'

test('of an address only the host is searched, and of a token only the id', () => {
  for (const [typed, searched] of [
    [' @shop_bot ', 'shop_bot'],
    ['https://user:word@hooks.shop.example:8443/secret?key=1', 'hooks.shop.example:8443'],
    ['http://shop.example', 'shop.example'],
    ['7003:AAE-secret', '7003'],
    ['bot7003:AAE-secret', '7003'],
    ['Corner Shop', 'Corner Shop'],
    ['', ''],
    ['x'.repeat(100), 'x'.repeat(64)],
  ] as const) {
    assert.equal(searchOf(typed), searched)
  }
})

test('a bot that is named in full comes before one that begins so', () => {
  const bots = [
    { bot_id: 1, username: 'a_bot', first_name: 'The Shop' },
    { bot_id: 2, username: 'b_bot', first_name: 'Shop of all' },
    { bot_id: 3, username: 'Shopping', first_name: 'C' },
    { bot_id: 4, username: 'd_bot', first_name: 'SHOP' },
  ]
  const best = bots.toSorted((a, b) => rankOf(a, 'Shop') - rankOf(b, 'Shop'))
  assert.deepEqual(
    best.map((bot) => bot.bot_id),
    [4, 3, 2, 1],
  )
})

test('a command is found by the beginnings of its words, in any order and case', () => {
  for (const text of ['', 'dead', 'LETTERS d', 'go dead', 'go to dead letters']) {
    assert(hasWords('Go to Dead letters', text), text)
  }
  for (const text of ['ead', 'dead x', '7003']) {
    assert(!hasWords('Go to Dead letters', text), text)
  }
})
