/** Everything that the server asks of others, with every hostile answer: it ends, takes little, and is told in words. */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { mib } from '../../../src/kit/limits.ts'
import { FakeClock } from '../../support/kit/fake-clock.ts'
import { until } from '../../support/kit/until.ts'
import {
  badlyFramed,
  brokenOff,
  endless,
  type HostileAnswer,
  late,
  notHttp,
  oddContents,
  refusals,
} from '../../support/network/hostile-answers.ts'
import { type HostileServer, startHostileServer } from '../../support/network/hostile-server.ts'
import {
  asked,
  type OutgoingUse,
  outgoingUses,
  type Question,
  secret,
  taken,
} from '../../support/network/outgoing-uses.ts'

/** What a use reads of an answer at most, beside its framing. */
const bodyBytesMax = 8 * mib
/** What the kernel and the buffers of two sockets hold beside what was read. */
const inFlightBytesMax = 12 * mib

/** What is told is one line that people can read, without the secret of the question. */
function assertReadable(told: string): void {
  assert.match(told, /^[\p{L}\p{N}\p{P}\p{S} ]{5,}$/u)
  assert(!told.includes(secret), told)
}

function assertTold(use: OutgoingUse, told: string, mayBeTaken: boolean): void {
  if (mayBeTaken && told === taken) return
  assert.match(told, use.words)
  assertReadable(told)
}

function mostOf(server: HostileServer): number {
  return Math.max(0, ...server.written())
}

async function assertLittle(use: OutgoingUse, server: HostileServer): Promise<void> {
  if (use.isInThread !== true) await until(() => server.open() === 0)
  const bytes = mostOf(server)
  assert(bytes < bodyBytesMax + inFlightBytesMax, `${bytes} bytes were taken`)
}

const failures = { ...endless, ...brokenOff, ...notHttp, ...refusals, ...late }
const successes = { ...badlyFramed, ...oddContents }

async function tryEach(
  t: TestContext,
  use: OutgoingUse,
  answers: Readonly<Record<string, HostileAnswer>>,
  one: (server: HostileServer) => Promise<string>,
): Promise<void> {
  const server = await startHostileServer(t, { head: '' })
  for (const [name, answer] of Object.entries(answers)) {
    // meter-requests.test.ts has the clock of those.
    if (answer.drip !== undefined && use.isInThread === true) continue
    await t.test(name, async (each) => {
      server.answerWith(answer)
      const told = await one(server)
      each.diagnostic(`${told.slice(0, 160)} (${mostOf(server)} bytes)`)
      await assertLittle(use, server)
    })
  }
}

/** An answer that is read has come after this time. */
const patienceMs = 200

/** Asks once. The clock stands still at first, and moves if no answer has come. */
async function toldOf(use: OutgoingUse, question: Omit<Question, 'clock'>): Promise<string> {
  const clock = new FakeClock()
  const state = { isOver: false }
  const asking = asked(use, { ...question, clock }).finally(() => {
    state.isOver = true
  })
  const startMs = performance.now()
  while (!state.isOver) {
    await new Promise((resolve) => setTimeout(resolve, 2))
    if (performance.now() - startMs > patienceMs) await clock.advance(use.lateStepMs)
  }
  return asking
}

async function tryUse(t: TestContext, name: string, use: OutgoingUse): Promise<void> {
  await t.test(`${name} takes little of an answer that is none, and ends with a reason`, (of) =>
    tryEach(of, use, failures, async ({ origin }) => {
      const told = await toldOf(use, { origin, world: of })
      assertTold(use, told, false)
      return told
    }),
  )
  await t.test(`${name} takes little of an answer with a good status line and bad contents`, (of) =>
    tryEach(of, use, successes, async ({ origin }) => {
      const told = await toldOf(use, { origin, world: of })
      if (use.isFirstLineEnough) assert.equal(told, taken)
      else assertTold(use, told, true)
      return told
    }),
  )
}

// The uses wait most of the time.
test('every use ends with every answer', { concurrency: true }, async (t) => {
  const uses = Object.entries(outgoingUses)
  await Promise.all(uses.map(([name, use]) => t.test(name, (of) => tryUse(of, name, use))))
})
