import assert from 'node:assert/strict'
import { test } from 'node:test'
import { botHash, botTabs, queryOf, routeOf } from '../../../../src/page/frame/page-route.ts'

test('each tab of each queue has an address that leads back to it', () => {
  for (const tab of ['activity', 'dead-letters', 'try', 'settings'] as const) {
    assert(tab in botTabs)
    for (const isTest of [false, true]) {
      const queue = { botId: '4711', isTest }
      const route = { page: 'bot', queue, tab, updateId: undefined }
      assert.deepEqual(routeOf(botHash(queue, tab)), route)
      const update = { page: 'bot', queue, tab: 'updates', updateId: 29 }
      assert.deepEqual(routeOf(botHash(queue, 'updates', 29)), update)
    }
  }
})

test('an address is a page with a query, or unknown', () => {
  assert.deepEqual(routeOf(''), { page: 'bots' })
  assert.deepEqual(routeOf('#/?state=failing'), { page: 'bots' })
  assert.deepEqual(routeOf('#/dead-letters'), { page: 'dead-letters' })
  assert.equal(queryOf('#/?state=failing').get('state'), 'failing')
  for (const wrong of [
    '#/bot',
    '#/bots/x',
    '#/bots/1/nothing',
    '#/bots/1/try/29',
    '#/bots/4711/constructor',
  ]) {
    assert.deepEqual(routeOf(wrong), { page: 'unknown' }, wrong)
  }
})
