import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  isMisdirected,
  misdirected,
  learnOwner,
  misdirectedHeaders,
  OwnerSearch,
} from '../../../../src/links/forward/owner-search.ts'
import { type ResponseHead, readResponseHead } from '../../../../src/links/link/response-head.ts'
import type { ShardOwnerHint } from '../../../../src/process/routes.ts'
import { ownerWaitMs, ownerWaitMsMax } from '../../../../src/api/limits.ts'
import { ownerView } from '../../../support/network/owner-view.ts'
import { FakeClock } from '../../../support/kit/fake-clock.ts'

function headOf(owner: ShardOwnerHint | undefined): ResponseHead {
  const headers = Object.entries(misdirectedHeaders(owner)).map(
    ([name, value]) => `${name}: ${value}`,
  )
  const line = `HTTP/1.1 ${misdirected.status} ${misdirected.message}`
  return readResponseHead([line, ...headers].join('\r\n'))
}

function ownerNamedIn(head: ResponseHead): ShardOwnerHint | undefined {
  let named: ShardOwnerHint | undefined
  learnOwner(head, { learn: (owner) => void (named = owner) })
  return named
}

test('a worker that does not have a shard names its owner, if it knows one', () => {
  const owner = { epoch: 12, boot: 'b00700000000cafe' }
  assert(isMisdirected(headOf(owner)))
  assert.deepEqual(ownerNamedIn(headOf(owner)), owner)
  // Nobody has it.
  assert.deepEqual(ownerNamedIn(headOf({ epoch: 0, boot: '' })), { epoch: 0, boot: '' })
  assert.equal(ownerNamedIn(headOf(undefined)), undefined)
})

interface SearchEnd {
  readonly isFound: boolean
  readonly tookMs: number
  readonly asked: number
}

/** Runs a search whose attempts call `attempt` with their time and must return whether the shard was found. */
async function searched(
  attempt: (search: OwnerSearch, nowMs: number) => boolean,
  view = ownerView(),
): Promise<SearchEnd> {
  const clock = new FakeClock()
  const search = new OwnerSearch(clock, view)
  const startMs = clock.monotonicMs()
  let [asked, end]: [number, SearchEnd | undefined] = [0, undefined]
  const once = (): void => {
    asked += 1
    const tookMs = clock.monotonicMs() - startMs
    const isFound = attempt(search, tookMs)
    if (isFound || !search.again(once)) end = { isFound, tookMs, asked }
  }
  once()
  await clock.advance(2 * ownerWaitMsMax)
  assert(end !== undefined)
  return end
}

const next = { epoch: 12, boot: 'b00700000000cafe' }

test('a request finds a shard that takes longer to open than it would wait without a word of it', async () => {
  const { isFound, asked } = await searched((search, nowMs) => {
    if (nowMs >= 1.5 * ownerWaitMs) return true
    search.misdirected(headOf(next))
    return false
  })
  assert(isFound)
  // Thousands of requests may wait for the worker that opens it.
  assert(asked < 100, `asked ${asked} times`)
})

test('a request of which nobody says who has its shard is refused early', async () => {
  for (const owner of [undefined, { epoch: 0, boot: '' }]) {
    const { isFound, tookMs } = await searched((search) => {
      search.misdirected(headOf(owner))
      return false
    })
    assert(!isFound)
    assert(tookMs >= ownerWaitMs && tookMs < 1.1 * ownerWaitMs, `took ${tookMs} ms`)
  }
})

test('a request waits anew when the routes name another place, and no longer for one that stays the same', async () => {
  const newsMs = ownerWaitMs - 500
  const { tookMs } = await searched((search, nowMs) => {
    search.asks(nowMs < newsMs ? 1 : 2)
    return false
  })
  assert(tookMs >= newsMs + ownerWaitMs && tookMs < newsMs + 1.3 * ownerWaitMs, `took ${tookMs} ms`)
})

test('a request gives up in the end, whatever it hears', async () => {
  let place = 0
  const { isFound, tookMs } = await searched((search) => {
    search.asks(place++)
    search.misdirected(headOf(next))
    return false
  })
  assert(!isFound)
  assert(tookMs >= ownerWaitMsMax && tookMs < ownerWaitMsMax + 500, `took ${tookMs} ms`)
})

test('a request waits for an owner that is there and too busy for it, but not for one that is away', async () => {
  for (const isBusy of [true, false]) {
    const { tookMs } = await searched((search) => {
      search.unreached({ isBusy })
      return false
    })
    const waitMs = isBusy ? ownerWaitMsMax : ownerWaitMs
    assert(tookMs >= waitMs && tookMs < waitMs + 500, `took ${tookMs} ms`)
  }
})

test('a request waits for the next node of its shard that does not respond yet, but not forever', async () => {
  const onItsWay = ownerView({ isOnItsWay: () => true })
  for (const foundMs of [ownerWaitMsMax - 500, Infinity]) {
    const { isFound, tookMs } = await searched((search, nowMs) => {
      search.unreached({ isBusy: false })
      return nowMs >= foundMs
    }, onItsWay)
    assert.equal(isFound, foundMs < ownerWaitMsMax)
    assert(tookMs >= ownerWaitMsMax - 500 && tookMs < ownerWaitMsMax + 500, `took ${tookMs} ms`)
  }
})
