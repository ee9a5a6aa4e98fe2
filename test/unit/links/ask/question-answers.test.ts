/** Questions of one worker to another without a link: what `ask` sends is injected into the routes of the other worker. */
import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import { test } from 'node:test'
import Fastify from 'fastify'
import { PostboteError } from '../../../../src/kit/errors.ts'
import { ask } from '../../../../src/links/ask/ask-workers.ts'
import type { OwnerStream } from '../../../../src/links/ask/owner-stream.ts'
import {
  addAnswers,
  type AnswersTo,
  type InputOf,
  type Question,
} from '../../../../src/links/ask/question.ts'
import { keysOwnerQuestions } from '../../../../src/access/key-sync.ts'
import { botQuestions } from '../../../../src/features/bots/bot-routes.ts'
import { eventQuestions } from '../../../../src/features/events/event-routes.ts'
import { fleetQuestions } from '../../../../src/features/fleet/fleet-routes.ts'
import { keyQuestions } from '../../../../src/features/keys/key-routes.ts'
import { sessionQuestions } from '../../../../src/features/keys/session-routes.ts'
import { historyQuestions } from '../../../../src/features/server/server-routes.ts'
import { nodeQuestions } from '../../../../src/nodes/node-routes.ts'

const questions = {
  ...fleetQuestions,
  ...historyQuestions,
  ...botQuestions,
  ...nodeQuestions,
  ...eventQuestions,
  ...keysOwnerQuestions,
  ...keyQuestions,
  ...sessionQuestions,
}

/** An input of each question, and how it is sent: nodes of the version before send and expect the same. */
const sent: {
  readonly [Name in keyof typeof questions]: readonly [
    input: InputOf<(typeof questions)[Name]>,
    path: string,
    body: string,
  ]
} = {
  bots: [
    { state: 'failing', after: 7, limit: 3 },
    '/internal/bot-list?state=failing&after=7&limit=3',
    '',
  ],
  ownBots: [
    { search: 'shop', after: 0, limit: 3, bots: [7, 9] },
    '/internal/own-bot-list',
    '{"search":"shop","after":0,"limit":3,"bots":[7,9]}',
  ],
  summary: [undefined, '/internal/summary', ''],
  history: [{ minutes: 60 }, '/internal/history?minutes=60', ''],
  botsNamed: [{ username: 'one_bot' }, '/internal/bots-named?username=one_bot', ''],
  node: [undefined, '/internal/node', ''],
  events: [{ after: 'a:5', last: 2, wait: 9 }, '/internal/events?after=a%3A5&last=2&wait=9', ''],
  keys: [{ version: 'v', uses: { key: 5 } }, '/internal/keys', '{"version":"v","uses":{"key":5}}'],
  recordCalls: [
    [{ id: '0', record: { timeMs: 1, operation: 'a', call: 'b', result: 'ok', requestId: 'c' } }],
    '/internal/record-calls',
    '[{"id":"0","record":{"timeMs":1,"operation":"a","call":"b","result":"ok","requestId":"c"}}]',
  ],
  keysChanged: [undefined, '/internal/keys-changed', ''],
  sessionEnded: [
    { slot: 1, session: '18446744073709' },
    '/internal/session-ended?slot=1&session=18446744073709',
    '',
  ],
}

const nothing = { input: 'nothing' }
const echo = async (input: unknown): Promise<unknown> => input ?? nothing

/** A worker that answers each question with its input. */
function setUp() {
  const app = Fastify()
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', { parseAs: 'string' }, async (_request: unknown, text: string) =>
    JSON.parse(text),
  )
  const answers = Object.fromEntries(Object.keys(questions).map((name) => [name, echo]))
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the answers are what the test compares
  addAnswers(app, questions, answers as unknown as AnswersTo<typeof questions>, {
    isForwarded: ({ headers }) => headers['x-forwarded'] === 'yes',
  })
  const seen: string[] = []
  const open = (path: string): OwnerStream => {
    let body = ''
    const response = async () => {
      seen.push(path, body)
      const { statusCode, body: text } = await app.inject({
        method: 'POST',
        url: path,
        headers: { 'x-forwarded': 'yes' },
        ...(body === '' ? {} : { payload: body }),
      })
      return { status: statusCode, retryAfter: undefined, body: Readable.from([Buffer.from(text)]) }
    }
    return {
      write: (bytes) => (body += Buffer.from(bytes).toString()) !== '',
      drained: async () => undefined,
      end: () => undefined,
      get response() {
        return response()
      },
      destroy: () => undefined,
    }
  }
  const { signal } = new AbortController()
  return { app, seen, asked: { open, signal } }
}

test('each question is sent as the version before sends it, and arrives as it was asked', async () => {
  const { asked, seen } = setUp()
  const rows: Readonly<Record<string, Question<never, unknown>>> = questions
  for (const [name, [input, path, body]] of Object.entries(sent)) {
    const question = rows[name]
    assert(question !== undefined)
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the table has the name and the input of one question
    const answer: unknown = await ask(asked, question, input as never)
    assert.deepEqual(seen.splice(0), [path, body])
    assert.deepEqual(answer, input ?? nothing)
  }
})

test('a client gets no answer, and a worker none to what is no question', async () => {
  const { app, asked } = setUp()
  for (const { path } of Object.values(questions)) {
    const { statusCode } = await app.inject({ method: 'POST', url: path })
    assert.equal(statusCode, 404, path)
  }
  const wrong = { slot: -1, session: 'x' }
  await assert.rejects(
    ask(asked, questions.sessionEnded, wrong),
    (error) => error instanceof PostboteError,
  )
})
