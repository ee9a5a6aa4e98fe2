import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BotList, botsListedMax } from '../../../../src/page/bots/bot-list.ts'
import { pageCall, type PageInput } from '../../../../src/page/frame/page-calls.ts'
import type { BotListShape, ListedBotShape } from '../../../../src/page/frame/shapes.ts'

/** A server with bots from 1 to `count`. */
class FakeApi {
  readonly asked: string[] = []
  readonly #count: number
  /** What the next calls wait for. */
  gate: Promise<void> = Promise.resolve()

  constructor(count: number) {
    this.#count = count
  }

  async call(id: 'listBots', input: PageInput<'listBots'>): Promise<BotListShape> {
    const path = pageCall(id, input).target
    this.asked.push(path)
    const query = new URLSearchParams(path.split('?')[1])
    const after = Number(query.get('after') ?? 0)
    const limit = Number(query.get('limit'))
    await this.gate
    const length = Math.min(limit, this.#count - after)
    const bots: ListedBotShape[] = Array.from({ length }, (_, nth) => ({
      bot_id: after + nth + 1,
      first_name: 'Test',
      username: query.get('search') ?? '',
      created_at: 0,
      mode: null,
      pending: null,
      oldest_age: null,
      paused: null,
      health: null,
      next_attempt: null,
    }))
    return { bots }
  }
}

test('a sorted list is one page, which the server selects', async () => {
  const api = new FakeApi(5_000)
  const list = new BotList(api)
  await list.ask({ search: 'shop', state: 'failing', sort: 'oldest_age' })
  await list.more()
  assert.deepEqual(api.asked, [
    '/v1/bots?limit=200&details=true&search=shop&state=failing&sort=oldest_age',
  ])
  assert.equal(list.bots.length, 200)
  assert.equal(list.hasMore, true)
})

test('a list in the order of ids grows to its end, and keeps its pages when it is refreshed', async () => {
  const api = new FakeApi(2_500)
  const list = new BotList(api)
  await list.ask({ search: '', state: '', sort: 'id' })
  while (list.hasMore) await list.more()
  assert.deepEqual(
    list.bots.map((bot) => bot.bot_id),
    Array.from({ length: 2_500 }, (_, nth) => nth + 1),
  )
  await list.refresh()
  assert.equal(list.bots.length, 2_500)
  assert.equal(list.hasMore, false)
})

test('a list in the order of ids has a bound, after which the reader must search', async () => {
  const list = new BotList(new FakeApi(botsListedMax + 1_000))
  await list.ask({ search: '', state: '', sort: 'id' })
  while (!list.isCut) await list.more()
  await list.more()
  assert.equal(list.bots.length, botsListedMax)
  await list.refresh()
  assert.equal(list.isCut, true)
})

test('a new list has no bots of the one before', async () => {
  const api = new FakeApi(600)
  const list = new BotList(api)
  const query = { search: '', state: '', sort: 'id' } as const
  await list.ask(query)
  while (list.hasMore) await list.more()
  await list.ask({ ...query, search: 'shop' })
  assert.equal(list.bots.length, 200)
  assert.equal(list.hasMore, true)
})

test('the response to an earlier question is dropped', async () => {
  const api = new FakeApi(10)
  const list = new BotList(api)
  let open: (() => void) | undefined
  api.gate = new Promise((resolve) => (open = resolve))
  const slow = list.ask({ search: 'a', state: '', sort: 'id' })
  api.gate = Promise.resolve()
  await list.ask({ search: 'ab', state: '', sort: 'id' })
  open?.()
  await slow
  assert.equal(list.bots[0]?.username, 'ab')
})
