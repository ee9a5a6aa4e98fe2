import assert from 'node:assert/strict'
import { EventEmitter, once } from 'node:events'
import { createServer, request, type ClientRequest, type IncomingMessage } from 'node:http'
import { test, type TestContext } from 'node:test'
import {
  IngestStream,
  type IngestStreamOptions,
  pairBytesPerS,
  pairWaitMs,
  streamCarryBytesFree,
} from '../../../../src/features/ingest/ingest-stream.ts'
import { rootStreamAccess } from '../../../support/queue/keys-of.ts'
import { IngestTurns } from '../../../../src/features/ingest/ingest-turns.ts'
import { LongLines } from '../../../../src/features/ingest/long-lines.ts'
import type { Owners } from '../../../../src/links/ask/owner-stream.ts'
import type { BotRegistry } from '../../../../src/bots/registry.ts'
import type { PushOutcome, PushReceipt } from '../../../../src/bots/push-receipt.ts'
import { PostboteError } from '../../../../src/kit/errors.ts'
import { streamIdleMs } from '../../../../src/kit/limits.ts'
import { streamPairsMax } from '../../../../src/features/ingest/stream-results.ts'
import type { UpdateRows } from '../../../../src/shard/update-rows.ts'
import { FakeClock } from '../../../support/kit/fake-clock.ts'
import { FakeOwnerStream } from '../../../support/network/fake-owner-stream.ts'
import { TestCounters } from '../../../support/store/shard-life.ts'

interface Push {
  readonly rows: UpdateRows
  readonly nths: readonly number[]
  readonly botIds: readonly number[]
  /** @param left - the indexes of the pushes that find no shard */
  accept(left?: readonly number[]): void
  answer(results: readonly PushOutcome[]): void
  fail(error: unknown): void
}

/** One stream between a real client and a bot service that the test controls. */
class StreamLife {
  readonly clock = new FakeClock()
  readonly counters = new TestCounters()
  readonly pushes: Push[] = []
  readonly owners: FakeOwnerStream[] = []
  readonly turns = new IngestTurns({ clock: this.clock })
  readonly longLines = new LongLines(1)
  /** The largest number of bytes for which there is room. */
  roomBytes = Infinity
  /** The checks that were sent to the thread, oldest first. The test calls each, with the text that the thread finds. */
  readonly checks: ((text?: { readonly start: number; readonly end: number }) => void)[] = []
  /** Whether pushes are accepted and get their result immediately: the id of the bot. */
  isAnswering = true
  /** Whether the shard of the bots below 1,000 has left this worker. */
  hasLeft = false
  /** Whether that of all other bots has come. */
  hasCome = false
  stream: IngestStream | undefined
  request: IncomingMessage | undefined
  ended: Promise<void> | undefined
  client!: ClientRequest
  received = ''
  #onChange: (() => void)[] = []

  static async open(
    t: TestContext,
    options: {
      readonly isForwarded?: boolean
      readonly updateBytesMax?: number
      readonly headers?: Readonly<Record<string, string>>
    } = {},
  ): Promise<StreamLife> {
    const life = new StreamLife()
    const server = createServer((incoming, response) => {
      life.request = incoming
      life.stream = new IngestStream({
        request: incoming,
        response,
        bots: life.#bots(),
        clock: life.clock,
        counters: life.counters,
        updateBytesMax: options.updateBytesMax ?? 100,
        checkPool: life.#checkPool(),
        turns: life.turns,
        longLines: life.longLines,
        reservation: {
          hold: (bytes) => bytes <= life.roomBytes,
          piece: () => undefined,
          end: () => undefined,
        },
        access: rootStreamAccess(life.clock),
        owners: life.#owners(),
        isForwarded: options.isForwarded === true,
      })
      life.ended = life.stream.run()
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const address = server.address()
    assert(address !== null && typeof address === 'object')
    const { port } = address
    const { headers = {} } = options
    life.client = request({ port, host: '127.0.0.1', method: 'POST', agent: false, headers })
    life.client.on('error', () => undefined)
    t.after(() => {
      life.client.destroy()
      server.closeAllConnections()
      server.close()
    })
    life.client.flushHeaders()
    life.client.on('response', (response: IncomingMessage) => {
      response.on('error', () => undefined)
      response.setEncoding('utf8')
      response.on('data', (text: string) => {
        life.received += text
        life.changed()
      })
      response.on('end', () => {
        life.received += 'END'
        life.changed()
      })
    })
    await once(life.client, 'response')
    return life
  }

  changed(): void {
    for (const wake of this.#onChange.splice(0)) wake()
  }

  /** Waits until a condition holds, which is checked again at every event. */
  async until(holds: () => boolean): Promise<void> {
    while (!holds()) {
      await new Promise<void>((resolve) => {
        this.#onChange.push(resolve)
      })
    }
  }

  /** Bots below 1,000 belong to this worker, all others to another one. */
  #owners(): Owners {
    return {
      self: 0,
      others: [1],
      isOtherNode: () => false,
      hangs: () => 0,
      ownerOf: (botId) => (botId < 1_000 ? 0 : 1),
      isOwn: (owner) => (owner === 0 ? !this.hasLeft : this.hasCome),
      hasLeft: false,
      openStream: () => {
        const owner = new FakeOwnerStream()
        this.owners.push(owner)
        this.changed()
        return owner
      },
    }
  }

  /** Sends every update to the thread that is longer than those of `pairs`. */
  #checkPool(): IngestStreamOptions['checkPool'] {
    return {
      takes: (bytes) => bytes > 20,
      check: (rows, nths) =>
        new Promise((resolve) => {
          this.checks.push((text) => {
            if (text !== undefined) rows.setText(nths[0]!, 0, text.start, text.end)
            resolve()
          })
          this.changed()
        }),
    }
  }

  #bots(): BotRegistry {
    const push = (rows: UpdateRows, nths: readonly number[]): PushReceipt => {
      const ids = nths.map((nth) => rows.botOf(nth))
      if (this.isAnswering) {
        this.changed()
        return { accepted: Promise.resolve(new Set()), results: Promise.resolve(ids) }
      }
      return this.#heldPush(rows, nths)
    }
    const { prototype } = class {
      readonly push = push
    }
    return Object.assign(Object.create(prototype), { push })
  }

  #heldPush(rows: UpdateRows, nths: readonly number[]): PushReceipt {
    const botIds = nths.map((nth) => rows.botOf(nth))
    const gate = new EventEmitter()
    const accepted = new Promise<ReadonlySet<number>>((resolve) => gate.once('accept', resolve))
    const accept = (left: readonly number[] = []): void => void gate.emit('accept', new Set(left))
    const results = new Promise<readonly PushOutcome[]>((resolve, reject) => {
      this.pushes.push({ rows, nths, botIds, accept, answer: resolve, fail: reject })
    })
    this.changed()
    return { accepted, results }
  }

  send(...botIds: number[]): void {
    this.client.write(pairs(botIds))
  }

  get lines(): string[] {
    return this.received.split('\n')
  }
}

function pairs(botIds: readonly number[]): string {
  return botIds.map((botId) => `{"bot_id":${botId}}\n{"message":{}}\n`).join('')
}

const id = (botId: number): string => `{"update_id":${botId}}`

test('every pair has a result line, in the order of the pairs, and a bad pair fails alone', async (t) => {
  const life = await StreamLife.open(t)
  life.client.end(
    `{"bot_id":1}\n{}\n` +
      `${pairs([101])}{"bot_id":102}\n{"message":{"t":"${'x'.repeat(2_000)}"}}\n${pairs([103])}{"bot_id":104}\n`,
  )
  await life.until(() => life.received.endsWith('END'))
  const codes = life.lines.map((line) => /"code":"(\w+)"/.exec(line)?.[1] ?? line)
  assert.deepEqual(codes, [
    'BAD_REQUEST',
    id(101),
    'UPDATE_TOO_LARGE',
    id(103),
    'BAD_REQUEST',
    'END',
  ])
  await life.ended
  // The pairs that reach the bots are counted there.
  const { counts } = life.counters
  assert.deepEqual(
    [counts.updates_refused, counts.updates_refused_bad_request],
    [3, 2],
    'a header that is bad, and one without its update',
  )
  assert.equal(counts.updates_refused_update_too_large, 1)
})

test('results of several owners are sent in the order of their pairs', async (t) => {
  const life = await StreamLife.open(t)
  life.send(2_000, 100, 2_001)
  await life.until(() => life.owners[0]?.written === pairs([2_000, 2_001]))
  life.client.end()
  const response = life.owners[0]!.answer()
  response.push(`${id(2_000)}\n`)
  response.push('{"filtered":true}\n')
  await life.until(() => life.received.endsWith('END'))
  assert.equal(life.received, `${id(2_000)}\n${id(100)}\n{"filtered":true}\nEND`)
  assert.equal(life.owners[0]?.isEnded, true)
})

test('the loss of an owner makes the outcome of its pairs unknown, and of no others', async (t) => {
  const life = await StreamLife.open(t)
  life.send(2_000, 100)
  await life.until(() => life.owners.length === 1)
  life.owners[0]!.answer().destroy(new Error('lost'))
  life.client.end()
  await life.until(() => life.received.endsWith('END'))
  assert.match(life.lines[0] ?? '', /OUTCOME_UNKNOWN/)
  assert.equal(life.lines[1], id(100))
})

test('this worker alone responds to a forwarded stream', async (t) => {
  const life = await StreamLife.open(t, { isForwarded: true })
  life.client.end(pairs([2_000]))
  await life.until(() => life.received.endsWith('END'))
  assert.equal(life.lines[0], id(2_000))
  assert.equal(life.owners.length, 0)
})

test('the next chunk is pushed when the ids of the previous one are assigned, not when they are synced', async (t) => {
  const life = await StreamLife.open(t)
  life.isAnswering = false
  life.send(100)
  await life.until(() => life.pushes.length === 1)
  life.send(101)
  life.pushes[0]!.accept()
  await life.until(() => life.pushes.length === 2)
  life.pushes[1]!.accept()
  life.pushes[1]!.answer([101])
  life.pushes[0]!.answer(['filtered'])
  life.client.end()
  await life.until(() => life.received.endsWith('END'))
  assert.equal(life.received, `{"filtered":true}\n${id(101)}\nEND`)
})

test('a push that fails as a whole fails each of its pairs', async (t) => {
  const life = await StreamLife.open(t)
  life.isAnswering = false
  life.send(100, 101)
  await life.until(() => life.pushes.length === 1)
  life.pushes[0]!.accept()
  life.pushes[0]!.fail(new PostboteError('STORE_UNAVAILABLE'))
  life.client.end()
  await life.until(() => life.received.endsWith('END'))
  assert.equal(life.received.match(/STORE_UNAVAILABLE/g)?.length, 2)
})

test('no more is read while too many pairs wait for their results', async (t) => {
  const life = await StreamLife.open(t)
  life.isAnswering = false
  const taken = (): number => life.pushes.reduce((sum, push) => sum + push.botIds.length, 0)
  const all = Array.from({ length: streamPairsMax + 4_000 }, (_, at) => 100 + (at % 900))
  life.client.end(pairs(all))
  while (taken() < streamPairsMax) {
    const seen = life.pushes.length
    await life.until(() => life.pushes.length > seen)
    life.pushes.at(-1)!.accept()
  }
  await new Promise((resolve) => setImmediate(resolve))
  const held = life.pushes.length
  assert(taken() < all.length)
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve))
  assert.equal(life.pushes.length, held, 'it stands still')
  life.isAnswering = true
  for (const push of life.pushes) push.answer(push.botIds)
  await life.until(() => life.received.endsWith('END'))
  assert.deepEqual(life.lines.slice(0, -1), all.map(id))
})

test('a stopped stream sends the results of the pairs it has read and ends its response normally', async (t) => {
  const life = await StreamLife.open(t)
  life.isAnswering = false
  life.client.write(`${pairs([100, 101])}{"bot_id":102}\n`)
  await life.until(() => life.pushes.length === 1)
  life.pushes[0]!.accept()
  life.stream?.stop()
  life.pushes[0]!.answer([100, 101])
  await life.until(() => life.received.endsWith('END'))
  assert.equal(life.received, `${id(100)}\n${id(101)}\nEND`)
  await life.ended
})

test('a stream with nothing to read for ten minutes is ended', async (t) => {
  const life = await StreamLife.open(t)
  life.send(100)
  await life.until(() => life.lines.length === 2)
  await life.clock.advance(streamIdleMs - 1)
  assert.equal(life.received, `${id(100)}\n`)
  await life.clock.advance(1)
  await life.until(() => life.received.endsWith('END'))
  assert.equal(life.clock.timers, 0)
})

test('a producer that disconnects in the middle leaves nothing behind', async (t) => {
  const life = await StreamLife.open(t)
  life.isAnswering = false
  life.client.write(`${pairs([100, 2_000])}{"bot_id":1`)
  await life.until(() => life.pushes.length === 1)
  life.pushes[0]!.accept()
  life.client.destroy()
  life.owners[0]!.answer().push(`${id(2_000)}\n`)
  life.pushes[0]!.answer([100])
  await life.ended
  assert.equal(life.owners[0]?.isEnded, true)
  assert.equal(life.clock.timers, 0)
})

async function turnsUntil(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise((resolve) => setImmediate(resolve))
}

function largePair(botId: number): string {
  return `{"bot_id":${botId}}\n{"message":{"text":"${'x'.repeat(40)}"}}\n`
}

test('while a thread checks, reading continues, and later pairs stay later', async (t) => {
  const life = await StreamLife.open(t)
  life.isAnswering = false
  life.client.write(`${pairs([100])}${largePair(101)}${pairs([102])}`)
  await life.until(() => life.checks.length === 1)
  life.client.write(pairs([103]))
  life.client.write(largePair(104))
  await life.until(() => life.checks.length === 2)
  assert.equal(life.pushes.length, 0)
  life.checks[1]!()
  // The thread finds another text than a check in place would.
  life.checks[0]!({ start: 1, end: 3 })
  const pushed: unknown[] = []
  while (pushed.length < 5) {
    const nth = life.pushes.findIndex((push) =>
      push.botIds.some((botId) => !pushed.includes(botId)),
    )
    if (nth < 0) {
      const seen = life.pushes.length
      await life.until(() => life.pushes.length > seen)
      continue
    }
    const push = life.pushes[nth]!
    const { botIds } = push
    pushed.push(...botIds)
    push.accept()
    push.answer(botIds)
  }
  assert.deepEqual(pushed, [100, 101, 102, 103, 104])
  const byBot = new Map(
    life.pushes.flatMap(({ rows, nths }) =>
      nths.map((nth) => [rows.botOf(nth), rows.textOf(nth).toString()]),
    ),
  )
  assert.equal(byBot.get(101), '"b')
  assert.equal(byBot.get(104), `"message":{"text":"${'x'.repeat(40)}"}`, 'it is checked in place')
  life.client.end()
  await life.until(() => life.received.endsWith('END'))
  assert.deepEqual(life.lines.slice(0, -1), [100, 101, 102, 103, 104].map(id))
  assert.equal(life.turns.weight, 0)
})

test('a feed with a pair that has no result gets the next ones, although the shard has come here', async (t) => {
  const life = await StreamLife.open(t)
  life.send(2_000)
  await life.until(() => life.owners.length === 1)
  life.hasCome = true
  life.send(2_001, 100)
  await turnsUntil(() => life.owners[0]!.written === pairs([2_000, 2_001]))
  life.owners[0]!.answer().push(`${id(2_000)}\n${id(2_001)}\n`)
  await life.until(() => life.lines.length === 4)
  life.isAnswering = false
  life.send(2_002)
  await life.until(() => life.pushes.length === 1)
  assert.deepEqual(life.pushes[0]!.botIds, [2_002])
})

test('a pair does not pass an earlier one that a thread checks while the shard of both leaves', async (t) => {
  const life = await StreamLife.open(t)
  life.isAnswering = false
  const large = `{"bot_id":100}\n{"message":{"text":"large"}}\n`
  life.client.write(large)
  await life.until(() => life.checks.length === 1)
  life.hasLeft = true
  life.client.end(pairs([101]))
  await turnsUntil(() => life.request!.complete)
  assert.equal(life.owners.length, 0)
  life.checks[0]!()
  await turnsUntil(() => life.owners[0]?.written === `${large}${pairs([101])}`)
  assert(life.owners[0]!.isEnded)
  assert.equal(life.pushes.length, 0)
})

test('pairs that find no shard follow it, and all later ones come after them', async (t) => {
  const life = await StreamLife.open(t)
  life.isAnswering = false
  life.client.write(pairs([100, 101, 102]))
  await life.until(() => life.pushes.length === 1)
  life.client.end(pairs([103]))
  life.hasLeft = true
  life.pushes[0]!.accept([1, 2])
  await turnsUntil(() => life.owners[0]?.written === pairs([101, 102, 103]))
  life.owners[0]!.answer().push([101, 102, 103].map((each) => `${id(each)}\n`).join(''))
  life.pushes[0]!.answer([100, new PostboteError('STORE_UNAVAILABLE'), 'filtered'])
  await life.until(() => life.received.endsWith('END'))
  assert.deepEqual(life.lines.slice(0, -1), [100, 101, 102, 103].map(id))
  assert.equal(life.counters.counts.updates_refused, undefined)
})

test('a forwarded stream whose shard has left ends without the results of pairs that are not stored', async (t) => {
  const life = await StreamLife.open(t, { isForwarded: true })
  life.isAnswering = false
  const push = async (botId: number): Promise<Push> => {
    const { length } = life.pushes
    life.send(botId)
    await life.until(() => life.pushes.length > length)
    return life.pushes[length]!
  }
  const first = await push(100)
  first.accept()
  const second = await push(101)
  life.send(102)
  second.accept([0])
  second.answer([new PostboteError('STORE_UNAVAILABLE')])
  await turnsUntil(() => life.request!.readableLength === 0)
  first.answer([100])
  await life.until(() => life.received.endsWith('END'))
  assert.equal(life.received, `${id(100)}\nEND`)
  assert.equal(life.pushes.length, 2, 'the next owner stores them in their order')
  assert.equal(life.turns.weight, 0)
})

test('a forwarded pair that finds no shard is refused if a later one of its slice is stored', async (t) => {
  const life = await StreamLife.open(t, { isForwarded: true })
  life.isAnswering = false
  life.client.end(pairs([100, 101]))
  await life.until(() => life.pushes.length === 1)
  life.pushes[0]!.accept([0])
  life.pushes[0]!.answer([new PostboteError('STORE_UNAVAILABLE'), 101])
  await life.until(() => life.received.endsWith('END'))
  assert.match(life.received, /^.*STORE_UNAVAILABLE.*\n{"update_id":101}\nEND$/)
  assert.equal(life.counters.counts.updates_refused, 1)
})

test('a pair that becomes long waits for a place, and its stream is ended if it stalls', async (t) => {
  const life = await StreamLife.open(t, { updateBytesMax: 10 * streamCarryBytesFree })
  const leave = life.longLines.enter(undefined, () => undefined)
  const half = 'x'.repeat(5 * streamCarryBytesFree)
  life.client.write(`${pairs([100])}{"bot_id":101}\n{"message":{"text":"${half}`)
  await life.until(() => life.lines.length === 2)
  const pairMs = pairWaitMs + (half.length * 1_000) / pairBytesPerS + 1_000
  await life.clock.advance(pairMs)
  assert.equal(life.received, `${id(100)}\n`, 'it is not its fault')
  assert(life.request!.socket.bytesRead < half.length, 'nothing more is read')
  leave()
  await turnsUntil(() => life.request!.socket.bytesRead > half.length)
  await turnsUntil(() => life.request!.readableLength === 0)
  await life.clock.advance(pairMs)
  await life.until(() => life.received.endsWith('END'))
  let isFree = false
  life.longLines.enter(undefined, () => (isFree = true))
  assert.equal(isFree, true)
  assert.equal(life.received, `${id(100)}\nEND`)
  life.client.destroy()
  await life.ended
})

test('a stream whose pair arrives too slowly is ended, however often a byte comes', async (t) => {
  const life = await StreamLife.open(t)
  life.client.write(`${pairs([100])}{"bot_id":101}\n{"message":`)
  await life.until(() => life.lines.length === 2)
  for (let nth = 0; nth < 3; nth++) {
    const { bytesRead } = life.request!.socket
    await life.clock.advance(pairWaitMs / 3)
    life.client.write(' ')
    await turnsUntil(() => life.request!.socket.bytesRead > bytesRead)
  }
  await life.clock.advance(1_000)
  await life.until(() => life.received.endsWith('END'))
  assert.equal(life.received, `${id(100)}\nEND`)
})

test('a stream that finds no room for the beginning of a pair ends in order', async (t) => {
  const life = await StreamLife.open(t, { updateBytesMax: streamCarryBytesFree })
  life.roomBytes = 10_000
  life.client.write(`${pairs([100])}{"bot_id":101}\n{"message":{"text":"${'x'.repeat(20_000)}`)
  await life.until(() => life.received.endsWith('END'))
  assert.equal(life.received, `${id(100)}\nEND`)
})

test('a stream whose line ends curl removed is told how to keep them, and so is one whose pair is one line', async (t) => {
  const curl = await StreamLife.open(t, { headers: { 'user-agent': 'curl/8.0' } })
  curl.client.end('{"bot_id":100}{"message":{}}{"bot_id":100}{"message":{}}')
  await curl.until(() => curl.received.endsWith('END'))
  assert.match(curl.received, /expected its update on the next line; curl .* --data-binary/)
  const oneLine = await StreamLife.open(t)
  oneLine.client.end('{"bot_id":100,"message":{}}\n{"message":{}}\n')
  await oneLine.until(() => oneLine.received.endsWith('END'))
  assert.match(oneLine.received, /header: expected bot_id and options on a line of their own/)
})
