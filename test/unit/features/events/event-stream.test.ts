import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EventLog } from '../../../../src/process/event-log.ts'
import { eventsKeptMax } from '../../../../src/kit/limits.ts'
import { tailSilenceMs } from '../../../../src/api/limits.ts'
import { idInPosition } from '../../../../src/features/events/event-position.ts'
import {
  eventsAskAgainMs,
  EventStream,
  type NodePage,
  type NodeQuestion,
} from '../../../../src/features/events/event-stream.ts'
import { lookedRecordCostMs } from '../../../../src/queue/kept/look-payer.ts'
import { TestPayer } from '../../../support/http/test-payer.ts'
import { FakeClock, settle } from '../../../support/kit/fake-clock.ts'

class Node {
  readonly log: EventLog
  failure: Error | undefined
  questions = 0
  readonly #name: string | undefined

  constructor(clock: FakeClock, name?: string) {
    this.#name = name
    this.log = new EventLog({
      clock,
      node: name,
      stored: { events: [], deliveredTo: undefined },
      file: { add: () => undefined, deliveredTo: () => undefined },
    })
  }

  async ask({ after, ...rest }: NodeQuestion): Promise<NodePage> {
    this.questions += 1
    if (this.failure !== undefined) throw this.failure
    const id = after === undefined ? undefined : idInPosition(after, this.#name)
    return { ...(await this.log.read({ ...rest, after: id, limit: 1_000 })), node: this.#name }
  }

  report(botId: number): void {
    this.log.report({ type: 'queue.high', timeMs: 0, botId })
  }
}

class Reader {
  readonly clock = new FakeClock()
  readonly own: Node
  readonly others = new Map<number, Node | undefined>()
  text = ''
  isFull = false
  isEnded = false
  ends = 0
  #drain: (() => void) | undefined

  constructor(name?: string) {
    this.own = new Node(this.clock, name)
  }

  get log(): EventLog {
    return this.own.log
  }

  follow(from: Omit<NodeQuestion, 'waitMs'> = {}, payer?: TestPayer): EventStream {
    const stream = new EventStream({
      clock: this.clock,
      from,
      payer,
      own: (question) => this.own.ask(question),
      others: () => [...this.others.keys()],
      ask: async (other, question) => this.others.get(other)?.ask(question),
      sink: {
        write: (bytes) => {
          this.text += bytes.toString()
          return !this.isFull
        },
        drained: () => new Promise((resolve) => (this.#drain = resolve)),
        end: () => {
          this.isEnded = true
        },
      },
      onEnd: () => {
        this.ends += 1
      },
    })
    void stream.run()
    return stream
  }

  report(botId: number): void {
    this.own.report(botId)
  }

  drained(): void {
    this.isFull = false
    this.#drain?.()
  }

  /** The ids of the bots in what was written since the last call. */
  async take(): Promise<string[]> {
    await this.clock.advance(1)
    const { text } = this
    this.text = ''
    return text.match(/(?<="bot_id":)\d+/g) ?? []
  }
}

test('a stream shows what is asked for of the past, and then each event with its id', async () => {
  const reader = new Reader()
  for (const botId of [1, 2, 3]) reader.report(botId)
  reader.follow({ last: 1 })
  assert.deepEqual(await reader.take(), ['3'])
  reader.report(4)
  await reader.clock.advance(1)
  const id = reader.log.deliveryPosition()
  assert.match(
    reader.text,
    new RegExp(`^id: ${id}\nevent: queue\\.high\ndata: \\{"id":${id},.*\\}\n\n$`),
  )
})

test('a stream shows its position when it begins and after each silence', async () => {
  const reader = new Reader()
  reader.follow()
  await settle()
  const id = reader.log.deliveryPosition()
  assert.equal(reader.text, `retry: 500\n\nid: ${id}\n\n`)
  await reader.clock.advance(tailSilenceMs)
  assert.equal(reader.text, `retry: 500\n\nid: ${id}\n\nid: ${id}\n\n`)
})

test('a reader that takes nothing is asked for nothing, and learns later how much it has missed', async () => {
  const reader = new Reader()
  reader.isFull = true
  reader.follow()
  await settle()
  const { questions } = reader.own
  for (let botId = 0; botId < eventsKeptMax + 7; botId++) reader.report(botId)
  await reader.clock.advance(10 * tailSilenceMs)
  assert.equal(reader.own.questions, questions)
  reader.drained()
  await settle()
  assert.match(reader.text, /event: missed\ndata: \{"count":7\}\n\nid: /)
  const bots = await reader.take()
  assert.equal(bots[0], '7')
  assert.equal(bots.length, eventsKeptMax)
})

test('a stream that is stopped ends its response and writes nothing more', async () => {
  const reader = new Reader()
  const stream = reader.follow()
  await settle()
  stream.stop()
  stream.stop()
  assert(reader.isEnded)
  assert.equal(reader.ends, 1, 'at once, and not when the log answers')
  reader.text = ''
  reader.report(1)
  assert.deepEqual(await reader.take(), [])
  assert.equal(reader.text, '')
})

test('a stream ends if the log does not answer, so that its reader tries another worker', async () => {
  const reader = new Reader()
  reader.own.failure = new Error('the process that was called is gone')
  reader.follow()
  await settle()
  assert(reader.isEnded)
})

test('in a cluster a stream shows the events of all nodes, and its position names each', async () => {
  const reader = new Reader('east')
  const west = new Node(reader.clock, 'west')
  reader.others.set(300, west)
  // The second worker of that node.
  reader.others.set(301, undefined)
  west.report(1)
  reader.report(2)
  reader.follow({ last: 5 })
  assert.deepEqual((await reader.take()).toSorted(), ['1', '2'])
  west.report(3)
  await reader.clock.advance(1)
  const [east, other] = [reader.log.deliveryPosition(), west.log.deliveryPosition()]
  assert.match(
    reader.text,
    new RegExp(`^id: (?:east:${east},west:${other}|west:${other},east:${east})\n`),
  )
  const position = /id: (.*)/.exec(reader.text)?.[1] ?? ''
  reader.text = ''
  west.report(4)
  assert.deepEqual(await reader.take(), ['4'])
  reader.follow({ after: position })
  assert.deepEqual(
    await reader.take(),
    ['4'],
    'a reader that comes back misses nothing of any node',
  )
})

test('a node that does not answer is asked again, goes on where it was, and holds up nobody', async () => {
  const reader = new Reader('east')
  const west = new Node(reader.clock, 'west')
  reader.others.set(300, west)
  reader.follow()
  await settle()
  west.failure = new Error('the node is gone')
  west.report(1)
  await reader.clock.advance(tailSilenceMs)
  reader.text = ''
  west.report(2)
  reader.report(3)
  assert.deepEqual(await reader.take(), ['3'])
  west.failure = undefined
  await reader.clock.advance(eventsAskAgainMs)
  assert.deepEqual(await reader.take(), ['2'], 'the first one had reached the reader')
})

test('a node that joins later shows everything, and a worker that does not answer for its node is asked once', async () => {
  const reader = new Reader('east')
  reader.others.set(301, undefined)
  let asked = 0
  const has = reader.others.get.bind(reader.others)
  reader.others.get = (other) => {
    if (other === 301) asked += 1
    return has(other)
  }
  reader.follow()
  await settle()
  const south = new Node(reader.clock, 'south')
  south.report(7)
  reader.others.set(400, south)
  await reader.clock.advance(2 * tailSilenceMs)
  assert.deepEqual(await reader.take(), ['7'])
  assert.equal(asked, 1)
})

test('a reader that comes back while a node is away keeps its position there, and sees no event of it twice', async () => {
  const reader = new Reader('east')
  const west = new Node(reader.clock, 'west')
  reader.others.set(300, west)
  west.report(1)
  const stream = reader.follow({ last: 1 })
  assert.deepEqual(await reader.take(), ['1'])
  stream.stop()
  const [east, other] = [reader.log.deliveryPosition(), west.log.deliveryPosition()]
  west.failure = new Error('the node is gone')
  reader.follow({ after: `east:${east},west:${other}` })
  reader.report(2)
  await reader.clock.advance(1)
  assert.equal(idInPosition(reader.text.match(/(?<=^id: ).*/gm)?.at(-1) ?? '', 'west'), other)
  reader.text = ''
  west.failure = undefined
  west.report(3)
  await reader.clock.advance(eventsAskAgainMs)
  assert.deepEqual(await reader.take(), ['3'])
})

test('each page of events waits for the payer of its reader, and is charged', async () => {
  const reader = new Reader()
  for (const botId of [1, 2, 3]) reader.report(botId)
  const payer = new TestPayer()
  payer.isOver = 'waits'
  reader.follow({ last: 3 }, payer)
  assert.deepEqual([await reader.take(), payer.charges], [[], []])
  payer.goOn()
  assert.deepEqual(await reader.take(), ['1', '2', '3'])
  assert.deepEqual(payer.charges, [3 * lookedRecordCostMs])
  assert.equal(payer.waiting, 1)
})
