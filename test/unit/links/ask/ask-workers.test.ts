import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Type } from 'typebox'
import {
  askWorkers,
  workersAnswerMs,
  type PaidQuestion,
} from '../../../../src/links/ask/ask-workers.ts'
import { asks } from '../../../../src/links/ask/question.ts'
import { TestPayer } from '../../../support/http/test-payer.ts'
import { FakeClock, settle } from '../../../support/kit/fake-clock.ts'
import { FakeOwnerStream } from '../../../support/network/fake-owner-stream.ts'

const named = asks<{ readonly username: string }, readonly number[]>('bots-named', () =>
  Type.Object({ username: Type.String() }),
)

/** Three other workers; the last one is of another node. */
function setUp(paid?: PaidQuestion, here = async (): Promise<readonly number[]> => [0]) {
  const clock = new FakeClock()
  const asked: { readonly owner: number; readonly path: string; stream: FakeOwnerStream }[] = []
  const owners = {
    self: 0,
    others: [1, 2, 300],
    isOtherNode: (owner: number) => owner >= 256,
    ownerOf: () => 0,
    isOwn: () => true,
    hasLeft: false,
    hangs: () => 0,
    openStream: (owner: number, path: string) => {
      const stream = new FakeOwnerStream()
      asked.push({ owner, path, stream })
      return stream
    },
  }
  const answersHere = { named: here }
  const answers = askWorkers(
    { clock, owners, answers: answersHere, ...(paid && { paid }) },
    { named },
    'named',
    { username: 'one_bot' },
  )
  return { clock, asked, answers }
}

test('every worker is asked at once, and says whether it is of another node', async () => {
  const { asked, answers } = setUp()
  assert.deepEqual(
    asked.map(({ owner, path }) => `${owner} ${path}`),
    [1, 2, 300].map((owner) => `${owner} /internal/bots-named?username=one_bot`),
  )
  for (const { owner, stream } of asked) stream.answer().end(JSON.stringify([owner]))
  const all = (await answers).toSorted((a, b) => Number(a.answer[0]) - Number(b.answer[0]))
  assert.deepEqual(all, [
    { answer: [0], isOtherNode: false },
    { answer: [1], isOtherNode: false },
    { answer: [2], isOtherNode: false },
    { answer: [300], isOtherNode: true },
  ])
})

test('a worker that is lost, refuses or hangs is left out, and its request is given up', async () => {
  const { clock, asked, answers } = setUp()
  asked[0]!.stream.refuse('OUTCOME_UNKNOWN')
  asked[1]!.stream.answer(503).end('')
  const answered = answers.then((all) => all.map(({ answer }) => answer))
  await clock.advance(workersAnswerMs)
  assert.deepEqual(await answered, [[0]])
  assert.equal(asked[2]?.owner, 300)
  assert(asked[2].stream.isDestroyed)
  assert.equal(clock.timers, 0)
})

test('a question that costs much waits for its payer before anybody is asked, who pays for all workers', async () => {
  const payer = new TestPayer()
  payer.isOver = 'waits'
  const { asked, answers } = setUp({ payer, costMs: 3 })
  await settle()
  assert.deepEqual([asked.length, payer.charges], [0, []])
  payer.goOn()
  await settle()
  assert.deepEqual([asked.length, payer.charges], [3, [12]])
  for (const { stream } of asked) stream.answer().end('[]')
  assert.equal((await answers).length, 4)
  payer.isOver = 'refused'
  const refused = setUp({ payer, costMs: 3 })
  await assert.rejects(refused.answers, { code: 'TOO_MANY_REQUESTS' })
  assert.equal(refused.asked.length, 0)
})

test('an answer that is no JSON fails the question, also while this worker still thinks', async () => {
  const { asked, answers } = setUp(undefined, () => new Promise(() => undefined))
  asked[0]!.stream.answer().end('[1,')
  await assert.rejects(answers, SyntaxError)
  assert(asked.every(({ stream }, nth) => nth === 0 || stream.isDestroyed))
})
