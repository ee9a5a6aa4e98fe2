import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type IncomingMessage, request } from 'node:http'
import { test, type TestContext } from 'node:test'
import type { KeyAccess } from '../../../../src/api/access.ts'
import type { BotRegistry } from '../../../../src/bots/registry.ts'
import type { PushReceipt } from '../../../../src/bots/push-receipt.ts'
import type { UpdateRows } from '../../../../src/shard/update-rows.ts'
import { LongLines } from '../../../../src/features/ingest/long-lines.ts'
import { IngestStream } from '../../../../src/features/ingest/ingest-stream.ts'
import { IngestTurns } from '../../../../src/features/ingest/ingest-turns.ts'
import { StreamAccess } from '../../../../src/features/ingest/stream-access.ts'
import { FakeClock } from '../../../support/kit/fake-clock.ts'
import { limiterOf } from '../../../support/queue/keys-of.ts'
import { TestCounters } from '../../../support/store/shard-life.ts'

const access: KeyAccess = {
  id: '0123456789abcdef',
  name: 'producer',
  secretTag: '',
  scopes: new Set(['push']),
  bots: undefined,
  updatesPerSecond: 1,
  requestsPerSecond: undefined,
  endsAtMs: Infinity,
  limitSlot: 0,
}

/** Pushes everything, and counts it. */
class CountingBots {
  pushed = 0

  push(rows: UpdateRows, nths: readonly number[]): PushReceipt {
    this.pushed += nths.length
    const results = Promise.resolve(nths.map((nth) => rows.botOf(nth)))
    return { accepted: Promise.resolve(new Set()), results }
  }
}

/** Sends 1,000 pairs, of which the key may push one now. */
async function pacedStream(t: TestContext) {
  const clock = new FakeClock()
  const counters = new TestCounters()
  const bots = new CountingBots()
  const rests: boolean[] = []
  let stream: IngestStream | undefined
  let ended: Promise<void> | undefined
  const server = createServer((incoming, response) => {
    const ring = { isCurrent: () => true }
    stream = new IngestStream({
      request: incoming,
      response,
      bots: Object.assign(Object.create(null), { push: bots.push.bind(bots) }) as BotRegistry,
      clock,
      counters,
      updateBytesMax: 100,
      checkPool: { takes: () => false, check: async () => undefined },
      turns: new IngestTurns({ clock }),
      longLines: new LongLines(1),
      reservation: { hold: () => true, piece: () => undefined, end: () => undefined },
      access: new StreamAccess(access, ring, limiterOf(clock), clock),
      owners: Object.create(null),
      isForwarded: true,
      rests: (isResting) => rests.push(isResting),
    })
    ended = stream.run()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  const address = server.address()
  assert(address !== null && typeof address === 'object')
  const client = request({ port: address.port, host: '127.0.0.1', method: 'POST', agent: false })
  client.on('error', () => undefined)
  client.end('{"bot_id":100}\n{"message":{}}\n'.repeat(1_000))
  const [response] = await once(client, 'response')
  response.on('error', () => undefined)
  await once(response, 'data')
  assert.equal(bots.pushed, 1)
  assert(stream !== undefined && ended !== undefined)
  return { bots, client, response: response as IncomingMessage, rests, stream, ended }
}

test('a producer that is gone does not have its pairs pushed beyond the limit of its key', async (t) => {
  const { bots, client, ended } = await pacedStream(t)
  client.socket?.resetAndDestroy()
  await ended
  assert.equal(bots.pushed, 1)
})

test('a stream that gives way ends in order, without the pairs that wait for the pace of its key', async (t) => {
  const { bots, response, rests, stream } = await pacedStream(t)
  assert.deepEqual(rests, [true, false, true])
  stream.giveWay()
  response.resume()
  await once(response, 'end')
  assert.ok(response.complete)
  assert.equal(bots.pushed, 1)
})
