import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { type TestContext, test } from 'node:test'
import {
  LastResponses,
  lingeringBytesMax,
  lingeringShare,
} from '../../../../src/admission/connections/last-responses.ts'
import { kib, refusedLingerMs } from '../../../../src/kit/limits.ts'
import { FakeClock } from '../../../support/kit/fake-clock.ts'

test('a connection is closed after its response when the client closes its end, or after 2 s', async (t) => {
  const { clock, answers, open } = await setUp(t, 1_000)
  const [polite, stubborn] = [await open(), await open()]
  for (const { accepted } of [polite, stubborn]) answers.send(accepted, Buffer.from('no'))
  for (const { client } of [polite, stubborn]) {
    const [text] = await once(client, 'data')
    assert.equal(String(text), 'no')
  }
  polite.client.end()
  await once(polite.accepted, 'close')
  await clock.advance(refusedLingerMs - 1)
  assert.equal(stubborn.accepted.destroyed, false)
  await clock.advance(1)
  assert.equal(stubborn.accepted.destroyed, true)
})

test('past the limit the connection that has lingered longest is closed, and its client has the response', async (t) => {
  const lingering = 2
  const { answers, open } = await setUp(t, lingering / lingeringShare)
  const all = [await open(), await open(), await open(), await open()]
  for (const { accepted } of all) answers.send(accepted, Buffer.from('no'))
  assert.deepEqual(
    all.map(({ accepted }) => accepted.destroyed),
    [true, true, false, false],
  )
  const [text] = await once(all[0]!.client, 'data')
  assert.equal(String(text), 'no')
  // A connection that has closed does not count any more.
  all[2]!.client.end()
  await once(all[2]!.accepted, 'close')
  const next = await open()
  answers.send(next.accepted, Buffer.from('no'))
  assert.equal(all[3]!.accepted.destroyed, false)
})

test('a connection that ends after its responses lingers only while its client may still send', async (t) => {
  const { clock, answers, open } = await setUp(t, 1_000)
  const [sends, done] = [await open(), await open()]
  done.client.end()
  await once(done.accepted, 'end')
  const closed = once(done.accepted, 'close')
  for (const { accepted, client } of [sends, done]) {
    const ended = once(client, 'end')
    accepted.write('yes')
    answers.endAfterFlush(accepted)
    const [text] = await once(client, 'data')
    assert.equal(String(text), 'yes')
    await ended
  }
  await closed
  assert.equal(sends.accepted.destroyed, false)
  await clock.advance(refusedLingerMs)
  assert.equal(sends.accepted.destroyed, true)
})

test('a client that keeps sending is no longer read past the limit, and has its response', async (t) => {
  const { clock, answers, open } = await setUp(t, 1_000)
  const { client, accepted } = await open()
  const arrived = once(client, 'data')
  answers.send(accepted, Buffer.from('no'))
  client.on('error', () => undefined)
  const sent = client.write(Buffer.alloc(64 * lingeringBytesMax))
  assert.equal(sent, false)
  const [text] = await arrived
  assert.equal(String(text), 'no')
  while (!accepted.isPaused()) {
    await once(accepted, 'data')
    assert.ok(accepted.bytesRead <= 2 * lingeringBytesMax)
  }
  const { bytesRead } = accepted
  for (let nth = 0; nth < 20; nth++) await new Promise(setImmediate)
  // What the stream holds is less than a read of the socket and its buffer.
  assert.ok(accepted.bytesRead - bytesRead <= 128 * kib, `${accepted.bytesRead - bytesRead} more`)
  assert.ok(accepted.bytesRead <= lingeringBytesMax + 256 * kib, `${accepted.bytesRead} bytes`)
  await clock.advance(refusedLingerMs)
  assert.equal(accepted.destroyed, true)
})

async function setUp(t: TestContext, connectionsMax: number) {
  const clock = new FakeClock()
  const answers = new LastResponses(clock, connectionsMax)
  const server = createServer({ allowHalfOpen: true }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())
  const address = server.address()
  const port = address !== null && typeof address === 'object' ? address.port : 0
  const open = async () => {
    const client = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
    t.after(() => client.destroy())
    const [accepted]: Socket[] = await once(server, 'connection')
    assert.ok(accepted !== undefined)
    t.after(() => accepted.destroy())
    accepted.resume()
    return { client, accepted }
  }
  return { clock, answers, open }
}
