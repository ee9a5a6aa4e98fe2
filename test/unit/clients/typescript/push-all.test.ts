import assert from 'node:assert/strict'
import { EventEmitter, on } from 'node:events'
import { test } from 'node:test'
import { pushAll } from '../../../../clients/typescript/push-all.ts'
import type { PushItem } from '../../../../clients/typescript/pushed-update.ts'
import { settle } from '../../../support/kit/fake-clock.ts'
import { collectGarbage } from '../../../support/kit/held-memory.ts'
import { openStream } from '../../../support/producers/open-stream.ts'

const item = (botId: number): PushItem => ({ botId, update: { message: { text: `${botId}` } } })

function* brokenSource(): Generator<PushItem> {
  yield item(1)
  yield item(2)
  throw new Error('the source broke')
}

/** Results of items over a stream with one request, which the test responds to. */
function start(items: Iterable<PushItem> | AsyncIterable<PushItem>, resultsMax = 100) {
  const { stream, request } = openStream({ hasKeys: false })
  return { results: pushAll(items, () => stream, resultsMax), request }
}

test('results come in the order of the items, including refusals, and before the failure of the source', async () => {
  const { results, request } = start(brokenSource())
  const first = results.next()
  await settle()
  request().take()
  request().answer({ error: { code: 'UNKNOWN_BOT', message: 'no' } }, { update_id: 5 })
  assert.equal((await first).value?.error?.code, 'UNKNOWN_BOT')
  const second = await results.next()
  assert.deepEqual(second.value?.result, { isFiltered: false, updateId: 5, isDuplicate: false })
  assert.equal(second.value?.item.botId, 2)
  await assert.rejects(results.next(), /the source broke/)
})

test('the source is read only as far as results are taken', async () => {
  let read = 0
  function* source(): Generator<PushItem> {
    for (; ; read++) yield item(read)
  }
  const { results, request } = start(source(), 10)
  const first = results.next()
  await settle()
  const sent = request().take().length
  request().answer(...Array.from({ length: sent }, () => ({ update_id: 1 })))
  await first
  await settle()
  assert(read >= 10 && read <= 12, `${read}`)
  for (const _ of request().take()) request().answer({ update_id: 1 })
  // A consumer that leaves early reads nothing more, and what was pushed is finished.
  await results.return()
  assert(request().isEnded)
  assert(read <= 12)
})

test('items whose results were taken are not kept, even if the source is slower', async () => {
  const due = new EventEmitter()
  let first: WeakRef<PushItem> | undefined
  async function* source(): AsyncGenerator<PushItem> {
    for await (const [nth] of on(due, 'item')) {
      const next = item(nth)
      first ??= new WeakRef(next)
      yield next
    }
  }
  const { results, request } = start(source(), 10)
  for (let nth = 0; nth < 40; nth++) {
    const next = results.next()
    await settle()
    due.emit('item', nth)
    await settle()
    for (const _ of request().take()) request().answer({ update_id: 1 })
    assert.equal((await next).value?.item.botId, nth)
  }
  collectGarbage()
  assert(first !== undefined && first.deref() === undefined)
})

test('an item that is no JSON yields an error, and the next ones continue', async () => {
  const bad = { botId: 1, update: { message: { big: 1n } } }
  const { results, request } = start([bad, item(2)])
  assert.equal((await results.next()).value?.error?.code, 'BAD_UPDATE')
  await settle()
  const next = results.next()
  request().take()
  request().answer({ update_id: 5 })
  assert.equal((await next).value?.result?.isFiltered, false)
})
