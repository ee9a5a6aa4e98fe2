import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EventLog } from '../../../src/events/event-log.ts'
import { eventsKeptMax } from '../../../src/events/limits.ts'
import type { EventQuestion } from '../../../src/events/operator-event.ts'
import { tailSilenceMs } from '../../../src/private-api/limits.ts'
import { EventStream } from '../../../src/private-api/event-stream.ts'
import { FakeClock, settle } from '../../support/fake-clock.ts'

class Reader {
  readonly clock = new FakeClock()
  readonly log = new EventLog({
    clock: this.clock,
    stored: { events: [], deliveredTo: undefined },
    file: { add: () => undefined, deliveredTo: () => undefined },
  })
  text = ''
  questions = 0
  isFull = false
  isEnded = false
  ends = 0
  failure: Error | undefined
  #drain: (() => void) | undefined

  follow(from: Partial<EventQuestion> = {}): EventStream {
    const stream = new EventStream({
      from,
      read: (question) => {
        this.questions += 1
        return this.failure === undefined ? this.log.read(question) : Promise.reject(this.failure)
      },
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
    this.log.report({ type: 'queue.high', timeMs: this.clock.nowMs(), botId })
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
  const { questions } = reader
  for (let botId = 0; botId < eventsKeptMax + 7; botId++) reader.report(botId)
  await reader.clock.advance(10 * tailSilenceMs)
  assert.equal(reader.questions, questions)
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
  reader.failure = new Error('the process that was called is gone')
  reader.follow()
  await settle()
  assert(reader.isEnded)
})
