import assert from 'node:assert/strict'
import { test } from 'node:test'
import { StoreLifeCycle } from '../../../src/store/store-life-cycle.ts'
import { settle } from '../../support/kit/fake-clock.ts'

test('close admits no more calls and begins when the last admitted call has ended', async () => {
  let isClosed = false
  const life = new StoreLifeCycle({
    name: 'of a test',
    open: async () => undefined,
    close: async () => {
      isClosed = true
    },
  })
  await life.open()
  assert.equal(life.enter(), undefined)
  assert.equal(life.enter(), undefined)
  const closing = life.close()
  assert.match(String(life.enter()?.cause), /of a test to be open, but it is closing/)
  life.leave()
  await settle()
  assert.equal(isClosed, false)
  life.leave()
  await closing
  assert.equal(isClosed, true)
})

test('a refusal after a failed open says why it failed', async () => {
  const life = new StoreLifeCycle({
    name: 'of a test',
    open: () => Promise.reject(new Error('no disk')),
    close: async () => undefined,
  })
  await assert.rejects(life.open(), /no disk/)
  const cause = life.enter()?.cause
  assert.ok(cause instanceof Error)
  assert.match(String(cause.cause), /no disk/)
})
