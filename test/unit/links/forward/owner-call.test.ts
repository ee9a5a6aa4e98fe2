import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ownerWaitMs, ownerWaitMsMax } from '../../../../src/api/limits.ts'
import {
  OwnerCall,
  type OwnerFailure,
  type OwnerRequest,
  type OwnerTarget,
} from '../../../../src/links/forward/owner-call.ts'
import { misdirected, misdirectedHeaders } from '../../../../src/links/forward/owner-search.ts'
import type { ResponseReceiver } from '../../../../src/links/link/link-call.ts'
import { CallGivenUp, PeerUnreachable } from '../../../../src/links/link/owner-link.ts'
import { type ResponseHead, readResponseHead } from '../../../../src/links/link/response-head.ts'
import { ShardMoves } from '../../../../src/links/owner-wait.ts'
import type { ShardOwnerHint } from '../../../../src/process/routes.ts'
import { peerConnectWaitMs } from '../../../../src/process/limits.ts'
import { FakeClock } from '../../../support/kit/fake-clock.ts'
import { ownerView } from '../../../support/network/owner-view.ts'
import { workersMax } from '../../../../src/kit/limits.ts'

/** One attempt at an owner, and what was sent to it. */
interface Attempt {
  readonly place: number
  readonly isFresh: boolean
  readonly receiver: ResponseReceiver
  body: string
  isEnded: boolean
  isHurried: boolean
  isDestroyed: boolean
}

const fine = readResponseHead('HTTP/1.1 200 OK\r\nContent-Length: 2')
const next: ShardOwnerHint = { epoch: 7, boot: 'b007' }

function elsewhere(owner?: ShardOwnerHint): ResponseHead {
  const headers = Object.entries(misdirectedHeaders(owner)).map(
    ([name, value]) => `${name}: ${value}`,
  )
  return readResponseHead(
    [`HTTP/1.1 ${misdirected.status} ${misdirected.message}`, ...headers].join('\r\n'),
  )
}

const unreachable = new PeerUnreachable(new Error('nobody'))
const broken = new Error('the link was closed')

function setUp(request: Partial<OwnerRequest> = {}, given: Partial<OwnerTarget> = {}) {
  const clock = new FakeClock()
  const attempts: Attempt[] = []
  const owner: { place: number | undefined; generation: number; hangs: number } = {
    place: 1,
    generation: 1,
    hangs: 0,
  }
  const links = {
    hasGivenUp: false,
    call(
      { place, isFresh }: { place: number; isFresh: boolean },
      _: unknown,
      receiver: ResponseReceiver,
    ) {
      const attempt: Attempt = {
        place,
        isFresh,
        receiver,
        body: '',
        isEnded: false,
        isHurried: false,
        isDestroyed: false,
      }
      attempts.push(attempt)
      return {
        write(bytes: Uint8Array) {
          attempt.body += Buffer.from(bytes).toString()
          return true
        },
        end(bytes: Uint8Array = new Uint8Array()) {
          attempt.body += Buffer.from(bytes).toString()
          attempt.isEnded = true
        },
        resume: () => undefined,
        hurry: () => void (attempt.isHurried = true),
        destroy: () => void (attempt.isDestroyed = true),
      }
    },
  }
  const learned: ShardOwnerHint[] = []
  const target: OwnerTarget = {
    self: 0,
    place: () => owner.place,
    owner: ownerView({ learn: (named) => void learned.push(named) }),
    generation: () => owner.generation,
    hangs: () => owner.hangs,
    ...given,
  }
  const got: string[] = []
  const failures: { readonly how: OwnerFailure; readonly error: Error }[] = []
  const origin = { listener: 'private', clientAddress: '', hops: 1 } as const
  const call = new OwnerCall(
    { clock, links },
    target,
    {
      fields: { method: 'POST', url: '/', rawHeaders: [], origin },
      hasBody: true,
      keptBytesMax: 4,
      isIdempotent: true,
      ...request,
    },
    {
      answered: ({ status }, body) => void got.push(`${status} ${body.toString()}`),
      begun: ({ status }) => void got.push(`${status}`),
      part: (bytes) => got.push(bytes.toString()) > 0,
      ended: () => void got.push('end'),
      mayWrite: () => void got.push('mayWrite'),
      failed: (how, error) => void failures.push({ how, error }),
    },
  )
  const last = (): ResponseReceiver => {
    const attempt = attempts.at(-1)
    assert(attempt !== undefined)
    return attempt.receiver
  }
  return { clock, attempts, owner, links, learned, call, got, failures, last }
}

type World = ReturnType<typeof setUp>

function ended({ failures }: World): readonly OwnerFailure[] {
  return failures.map(({ how }) => how)
}

/** Lets each attempt end so, for as long as any search may last. */
async function endEach(world: World, end: (receiver: ResponseReceiver) => void): Promise<void> {
  const { clock, attempts, failures } = world
  for (let seen = 0; failures.length === 0; ) {
    for (; seen < attempts.length; seen++) {
      const attempt = attempts[seen]
      assert(attempt !== undefined)
      end(attempt.receiver)
    }
    if (clock.monotonicMs() > 3 * ownerWaitMsMax) return
    await clock.advance(20)
  }
}

test('a complete response is passed on once, and nothing after it', () => {
  const { call, attempts, got, last } = setUp()
  call.write(Buffer.from('ab'))
  call.end()
  call.start()
  assert.deepEqual(attempts, [
    { ...attempts[0], place: 1, isFresh: false, body: 'ab', isEnded: true },
  ])
  last().answered(fine, 'ok')
  last().lost(broken)
  assert.deepEqual(got, ['200 ok'])
})

test('a request to its own place, and a stream to one of this machine, takes a new link', () => {
  for (const [given, isFresh] of [
    [{ self: 1 }, true],
    [{ self: 0 }, false],
    [{ self: 0, isStream: true }, true],
    [{ self: 0, isStream: true, place: () => workersMax }, false],
  ] as const) {
    const { call, attempts } = setUp({}, given)
    call.start()
    assert.equal(attempts[0]?.isFresh, isFresh)
  }
})

test('a body that is written while nobody has the shard is sent as a whole to whoever has it next', async () => {
  const { clock, call, owner, attempts, got } = setUp()
  owner.place = undefined
  call.start()
  assert.equal(call.write(Buffer.from('more than is kept')), false)
  owner.place = 3
  await clock.advance(200)
  assert.deepEqual([attempts[0]?.place, attempts[0]?.body], [3, 'more than is kept'])
  assert.deepEqual(got, ['mayWrite'])
  call.write(Buffer.from('!'))
  call.end()
  assert.deepEqual([attempts[0]?.body, attempts[0]?.isEnded], ['more than is kept!', true])
})

for (const [why, end] of [
  ['cannot be reached', (receiver: ResponseReceiver) => receiver.lost(unreachable)],
  [
    'does not have the shard',
    (receiver: ResponseReceiver) => receiver.answered(elsewhere(next), ''),
  ],
] as const) {
  test(`a request whose owner ${why} is sent again with its body, whether or not it is idempotent`, async () => {
    const { clock, call, attempts, got, last } = setUp({ isIdempotent: false })
    call.start()
    call.write(Buffer.from('ab'))
    call.write(Buffer.from('cd'))
    end(last())
    await clock.advance(200)
    call.end()
    assert.deepEqual(
      attempts.map(({ body, isEnded }) => [body, isEnded]),
      [
        ['abcd', false],
        ['abcd', true],
      ],
    )
    last().answered(fine, 'ok')
    assert.equal(got.at(-1), '200 ok')
  })
}

test('a body that is larger than what is kept is not sent again', () => {
  const world = setUp({ keptBytesMax: 4 })
  world.call.start()
  world.call.write(Buffer.from('abcd'))
  world.call.write(Buffer.from('e'))
  world.last().answered(elsewhere(next), '')
  assert.deepEqual([ended(world), world.attempts.length], [['nowhere'], 1])
  const error = world.failures[0]?.error
  // The routes name no other place yet.
  assert(error instanceof ShardMoves && !error.isElsewhere)
  assert.deepEqual(world.learned, [next])
})

test('a call that ends without a response says where its shard goes, as far as its routes or its owner know', () => {
  const elsewhereNow = setUp({ keptBytesMax: 0 })
  elsewhereNow.call.start()
  elsewhereNow.call.write(Buffer.from('a'))
  elsewhereNow.owner.place = 2
  elsewhereNow.last().answered(elsewhere(next), '')
  const isOnItsWay = ownerView({ isOnItsWay: () => true })
  const awaited = setUp({ keptBytesMax: 0 }, { owner: isOnItsWay })
  awaited.call.start()
  awaited.call.write(Buffer.from('a'))
  awaited.last().lost(unreachable)
  const gone = setUp({ keptBytesMax: 0 })
  gone.call.start()
  gone.call.write(Buffer.from('a'))
  gone.last().lost(unreachable)
  const known = [elsewhereNow, awaited, gone].map(({ failures: [failure] }) =>
    failure?.error instanceof ShardMoves ? failure.error.isElsewhere : undefined,
  )
  assert.deepEqual(known, [true, false, undefined])
})

test('a call of which nobody says who has its shard ends after some seconds, and one that follows it later, but not never', async () => {
  for (const [owner, waitMs] of [
    [undefined, ownerWaitMs],
    [next, ownerWaitMsMax],
  ] as const) {
    const world = setUp({ isIdempotent: false })
    const startMs = world.clock.monotonicMs()
    world.call.start()
    await endEach(world, (receiver) => receiver.answered(elsewhere(owner), ''))
    const tookMs = world.clock.monotonicMs() - startMs
    assert(tookMs >= waitMs && tookMs < 1.1 * waitMs, `${tookMs} ms`)
    assert.deepEqual(ended(world), ['nowhere'])
  }
})

test('a lost request is repeated on the first owner and its successor, and not on a third', async () => {
  const world = setUp()
  const { clock, call, owner, attempts, last } = world
  call.start()
  last().lost(broken)
  await clock.advance(200)
  // The same process, which the kernel tears down.
  last().lost(broken)
  owner.generation = 2
  await clock.advance(200)
  assert.deepEqual([attempts.length, ended(world)], [3, []])
  last().lost(broken)
  assert.deepEqual(ended(world), ['unknown'])
})

test('a lost request is not repeated for longer than a process takes to end', async () => {
  const world = setUp()
  world.call.start()
  await endEach(world, (receiver) => receiver.lost(broken))
  assert.deepEqual(ended(world), ['unknown'])
  const tookMs = world.clock.monotonicMs()
  assert(world.attempts.length > 2 && tookMs < 2 * peerConnectWaitMs, `${tookMs} ms`)
})

test('a request that must not be carried out twice, or whose owner hung, or that is given up, is lost with its owner', () => {
  for (const [request, hangs, error] of [
    [{ isIdempotent: false }, 0, broken],
    [{}, 1, broken],
    [{}, 0, new CallGivenUp()],
  ] as const) {
    const world = setUp(request)
    world.call.start()
    world.owner.hangs = hangs
    world.last().lost(error)
    assert.deepEqual([ended(world), world.attempts.length], [['unknown'], 1])
  }
})

test('a request that was lost before is not reported as one that nobody took', async () => {
  const world = setUp()
  world.call.start()
  world.last().lost(broken)
  world.owner.place = undefined
  await world.clock.advance(2 * ownerWaitMs)
  assert.deepEqual(ended(world), ['unknown'])
})

test('a worker that ends looks for no owner', () => {
  const world = setUp()
  world.links.hasGivenUp = true
  world.owner.place = undefined
  world.call.start()
  assert.deepEqual(ended(world), ['nowhere'])
})

test('half a response is broken, whatever ends it', () => {
  for (const error of [broken, unreachable]) {
    const world = setUp()
    world.call.start()
    world.last().begun(fine)
    world.last().part(Buffer.from('o'))
    world.last().lost(error)
    assert.deepEqual([world.got, ended(world)], [['mayWrite', '200', 'o'], ['broken']])
  }
})

test('a call that is given up ends its request, and gets nothing more, in every state', async () => {
  const sent = setUp()
  sent.call.start()
  sent.call.destroy()
  sent.last().lost(broken)
  assert(sent.attempts[0]?.isDestroyed)
  const looking = setUp()
  looking.owner.place = undefined
  looking.call.start()
  looking.call.destroy()
  looking.owner.place = 1
  await looking.clock.advance(2 * ownerWaitMs)
  assert.deepEqual([looking.attempts.length, ended(sent), ended(looking)], [0, [], []])
})

test('a hurried request is hurried at each owner', async () => {
  const { clock, call, attempts, last } = setUp({ hasBody: false })
  call.hurry()
  call.start()
  last().answered(elsewhere(), '')
  await clock.advance(200)
  assert.deepEqual(
    attempts.map(({ isHurried }) => isHurried),
    [true, true],
  )
})

test('a repetition is sent a moment later, since a killed process still accepts connections', async () => {
  const { clock, call, attempts } = setUp({ isRepeat: true })
  call.start()
  assert.equal(attempts.length, 0)
  await clock.advance(200)
  assert.equal(attempts.length, 1)
})

test('a call is started once, and only a request with a body gets one', () => {
  const { call } = setUp({ hasBody: false })
  call.start()
  assert.throws(() => call.start(), assert.AssertionError)
  assert.throws(() => call.write(Buffer.from('x')), assert.AssertionError)
})
