import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import { test } from 'node:test'
import { PostboteError } from '../../../../src/kit/errors.ts'
import { ownerWaitMs, ownerWaitMsMax } from '../../../../src/kit/private-api-limits.ts'
import { ShardMoves } from '../../../../src/links/owner-wait.ts'
import { ownerAskAgainMs, type OwnerStream, postToOwner } from '../../../../src/links/ask/owners.ts'
import { FakeClock } from '../../../support/kit/fake-clock.ts'

const skip = (): void => undefined

function streamOf(response: OwnerStream['response']): OwnerStream {
  response.catch(skip)
  return { write: () => true, drained: async () => undefined, end: skip, response, destroy: skip }
}

function answered(): OwnerStream {
  const body = Readable.from([Buffer.from('fine')])
  return streamOf(Promise.resolve({ status: 200, retryAfter: undefined, body }))
}

function failed(code: 'STORE_UNAVAILABLE' | 'OUTCOME_UNKNOWN'): OwnerStream {
  return streamOf(Promise.reject(new PostboteError(code)))
}

test('an owner that is not there is looked for again, and the next one answers', async () => {
  const clock = new FakeClock()
  let asked = 0
  const answer = postToOwner(clock, () => (++asked < 3 ? failed('STORE_UNAVAILABLE') : answered()))
  await clock.advance(2 * ownerAskAgainMs)
  assert.equal((await answer).text, 'fine')
  assert.equal(asked, 3)
})

test('an owner that is not found in time is reported', async () => {
  const clock = new FakeClock()
  let asked = 0
  const answer = postToOwner(clock, () => {
    asked += 1
    return failed('STORE_UNAVAILABLE')
  })
  answer.catch(skip)
  await clock.advance(ownerWaitMs + ownerAskAgainMs)
  await assert.rejects(answer, { code: 'STORE_UNAVAILABLE' })
  assert.equal(asked, ownerWaitMs / ownerAskAgainMs + 1)
})

test('a call follows a shard that moves for as long as somebody says where it is, but not forever', async () => {
  const clock = new FakeClock()
  let asked = 0
  const answer = postToOwner(clock, () => {
    asked += 1
    return streamOf(Promise.reject(new ShardMoves(new Error('elsewhere'))))
  })
  answer.catch(skip)
  await clock.advance(ownerWaitMsMax + ownerAskAgainMs)
  await assert.rejects(answer, { code: 'STORE_UNAVAILABLE' })
  assert.equal(asked, ownerWaitMsMax / ownerAskAgainMs + 1)
})

test('a call that an owner may have carried out is not repeated', async () => {
  let asked = 0
  const answer = postToOwner(new FakeClock(), () => {
    asked += 1
    return failed('OUTCOME_UNKNOWN')
  })
  await assert.rejects(answer, { code: 'OUTCOME_UNKNOWN' })
  assert.equal(asked, 1)
})

test('an aborted call ends its request, and asks nobody again', async () => {
  const clock = new FakeClock()
  const over = new AbortController()
  let destroyed = 0
  let asked = 0
  const waiting = postToOwner(
    clock,
    () => {
      const { promise, reject } = pending()
      const destroy = (): void => {
        destroyed += 1
        reject(new PostboteError('OUTCOME_UNKNOWN'))
      }
      return { ...streamOf(promise), destroy }
    },
    { signal: over.signal },
  )
  const searching = postToOwner(
    clock,
    () => {
      asked += 1
      return failed('STORE_UNAVAILABLE')
    },
    { signal: over.signal },
  )
  await clock.advance(0)
  over.abort()
  await assert.rejects(waiting, { code: 'OUTCOME_UNKNOWN' })
  await assert.rejects(searching, { code: 'STORE_UNAVAILABLE' })
  await clock.advance(ownerWaitMs)
  assert.deepEqual({ destroyed, asked }, { destroyed: 1, asked: 1 })
})

function pending(): {
  readonly promise: OwnerStream['response']
  readonly reject: (error: unknown) => void
} {
  let reject: (error: unknown) => void = skip
  const promise = new Promise<never>((_resolve, refuse) => {
    reject = refuse
  })
  return { promise, reject }
}
