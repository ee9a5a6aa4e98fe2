/** Bodies that share a budget, compared with a model that knows what each of them has sent. */
import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  BodyBudget,
  type BodySender,
  uncountedBodyBytes,
} from '../../../../src/admission/budgets/body-budget.ts'
import { readBody } from '../../../../src/http/body.ts'
import { bodyPiecesPerCharge } from '../../../../src/http/limits.ts'
import { growingBodyBytesMin } from '../../../../src/http/growing-body.ts'

const counters = { add: (): void => undefined }
const alice: BodySender = { address: 'alice', shareBytesMax: 30_000 }
const bob: BodySender = { address: 'bob', shareBytesMax: 50_000 }

function budgetOf(bytesMax: number): BodyBudget<BodySender | undefined> {
  return new BodyBudget({ bytesMax, counters, senderOf: (sender) => sender })
}

test('a request for more than the rest of the budget is refused until other bodies have ended', () => {
  const budget = budgetOf(60_000)
  const [first, second] = [budget.reservationFor(alice), budget.reservationFor(bob)]
  assert(first.hold(20_000))
  assert(second.hold(40_000))
  assert.equal(second.hold(40_001), false)
  // A refusal takes nothing, and what was held stays held.
  assert.equal(budget.held, 60_000)
  first.end()
  first.end()
  assert(second.hold(40_001))
  assert.equal(budget.held, 40_001)
})

test('a sender has a share for all its bodies, and others keep room', () => {
  const budget = budgetOf(100_000)
  const [first, second, other] = [
    budget.reservationFor(alice),
    budget.reservationFor(alice),
    budget.reservationFor(bob),
  ]
  assert(first.hold(20_000))
  assert.equal(second.hold(10_001), false)
  assert(other.hold(50_000))
  assert(second.hold(10_000))
})

test('a small body, and one that is counted elsewhere, need no room', () => {
  const budget = budgetOf(0)
  assert(budget.reservationFor(alice).hold(uncountedBodyBytes))
  assert.equal(budget.reservationFor(alice).hold(uncountedBodyBytes + 1), false)
  assert(budget.reservationFor(undefined).hold(1_000_000))
  assert.equal(budget.held, 0)
})

interface Body {
  readonly request: Readable & { headers: Record<string, string> }
  /** How the body ended. */
  outcome: string
}

type Step =
  | { readonly do: 'open'; readonly sender: BodySender; readonly declared: number | undefined }
  | { readonly do: 'send'; readonly nth: number; readonly bytes: number }
  | { readonly do: 'end' | 'break' | 'fail'; readonly nth: number }

const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({
    do: fc.constant('open' as const),
    sender: fc.constantFrom(alice, bob),
    declared: fc.option(fc.integer({ min: 1, max: 45_000 }), { nil: undefined }),
  }),
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('send' as const),
      nth: fc.nat(20),
      bytes: fc.integer({ min: 1, max: 12_000 }),
    }),
  },
  fc.record({
    do: fc.constantFrom('end' as const, 'break' as const, 'fail' as const),
    nth: fc.nat(20),
  }),
)

const bodyBytesMax = 20_000

function openBody(
  budget: BodyBudget<BodySender | undefined>,
  sender: BodySender,
  declared?: number,
): Body {
  const headers: Record<string, string> =
    declared === undefined
      ? { 'transfer-encoding': 'chunked' }
      : { 'content-length': `${declared}` }
  const request = Object.assign(new Readable({ read: () => undefined }), { headers })
  request.on('error', () => undefined)
  const body: Body = { request, outcome: 'open' }
  readBody(request, { bytesMax: bodyBytesMax, reservation: budget.reservationFor(sender) }).then(
    (bytes) => (body.outcome = `${bytes.length} bytes`),
    (error: { readonly code: string }) => (body.outcome = error.code),
  )
  return body
}

function carryOut(each: Exclude<Step, { readonly do: 'open' }>, request: Readable): void {
  if (each.do === 'send') request.push(Buffer.alloc(each.bytes))
  else if (each.do === 'end') request.push(null)
  else request.destroy(each.do === 'fail' ? new Error('reset') : undefined)
}

test('the budget holds and is returned in full, whatever happens to bodies', async () => {
  const outcomes = new Set<string>()
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 10, maxLength: 60 }), async (steps) => {
      const budget = budgetOf(70_000)
      const bodies: Body[] = []
      for (const each of steps) {
        if (each.do === 'open') {
          bodies.push(openBody(budget, each.sender, each.declared))
          continue
        }
        const request = bodies[each.nth % Math.max(bodies.length, 1)]?.request
        if (request === undefined || request.readableEnded || request.destroyed) continue
        carryOut(each, request)
        await new Promise((resolve) => setImmediate(resolve))
        assert(budget.held >= 0 && budget.held <= 70_000, `${budget.held}`)
      }
      for (const { request } of bodies) request.destroy()
      await new Promise((resolve) => setImmediate(resolve))
      assert.equal(budget.held, 0)
      for (const { outcome } of bodies) {
        assert.notEqual(outcome, 'open')
        outcomes.add(outcome.replace(/\d+/, 'n'))
      }
    }),
    // The fixed seed gives the same bodies each time, and with these, which take no time, all kinds of ends occur.
    { numRuns: 300, seed: 1 },
  )
  // Every kind of end occurred.
  const expected = ['BAD_REQUEST', 'REQUEST_TOO_LARGE', 'TOO_MANY_BODIES', 'n bytes']
  assert.deepEqual([...outcomes].toSorted(), expected)
})

test('a body that arrives in one piece is read even without room', async () => {
  const budget = budgetOf(0)
  const headers = { 'content-length': '20000' }
  const request = Object.assign(new Readable({ read: () => undefined }), { headers })
  const reading = readBody(request, {
    bytesMax: bodyBytesMax,
    reservation: budget.reservationFor(alice),
  })
  request.push(Buffer.alloc(20_000))
  assert.equal((await reading).length, 20_000)
})

test('a body in many small pieces needs at most twice its length in room', async () => {
  const budget = budgetOf(1_000_000)
  const headers = { 'transfer-encoding': 'chunked' }
  const request = Object.assign(new Readable({ read: () => undefined }), { headers })
  const reading = readBody(request, {
    bytesMax: bodyBytesMax,
    reservation: budget.reservationFor(bob),
  })
  for (let nth = 0; nth < 10_000; nth++) {
    request.push(Buffer.of(nth))
    if (nth % 1_000 === 0) await new Promise((resolve) => setImmediate(resolve))
    assert(budget.held <= Math.max(2 * (nth + 1), growingBodyBytesMin))
  }
  request.push(null)
  assert.equal((await reading)[9_999], 9_999 % 256)
  assert.equal(budget.held, 0)
})

test('a body in very many pieces is reported, and one in a usual number of pieces is not', () => {
  const told: number[] = []
  const budget = new BodyBudget<string>({
    bytesMax: 1,
    counters: { add: () => undefined },
    senderOf: () => undefined,
    onPieces: (_request, pieces) => told.push(pieces),
  })
  const reservation = budget.reservationFor('request')
  for (let nth = 1; nth < bodyPiecesPerCharge; nth++) reservation.piece()
  assert.deepEqual(told, [])
  for (let nth = 0; nth <= bodyPiecesPerCharge; nth++) reservation.piece()
  assert.deepEqual(told, [bodyPiecesPerCharge, bodyPiecesPerCharge])
})
