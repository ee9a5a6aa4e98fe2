import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  isMisdirected,
  misdirected,
  learnOwner,
  misdirectedHeaders,
} from '../../../../src/cluster/forward/owner-search.ts'
import { type ResponseHead, readResponseHead } from '../../../../src/cluster/link/response-head.ts'
import type { ShardOwnerHint } from '../../../../src/cluster/routes.ts'

function headOf(owner: ShardOwnerHint | undefined): ResponseHead {
  const headers = Object.entries(misdirectedHeaders(owner)).map(
    ([name, value]) => `${name}: ${value}`,
  )
  const line = `HTTP/1.1 ${misdirected.status} ${misdirected.message}`
  return readResponseHead([line, ...headers].join('\r\n'))
}

function ownerNamedIn(head: ResponseHead): ShardOwnerHint | undefined {
  let named: ShardOwnerHint | undefined
  learnOwner(head, (owner) => (named = owner))
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
