import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  HandOff,
  type HandOffChannel,
  handOffQueueBytesMax,
  handOffQueueMax,
  type WaitingConnection,
} from '../../../../src/process/primary/hand-off.ts'
import { FakeClock } from '../../../support/kit/fake-clock.ts'

class Connection implements WaitingConnection {
  readonly listener
  readonly clientAddress = '192.0.2.1'
  readonly bytes: Buffer
  isOpen = true
  state = 'waiting'
  constructor(bytes = Buffer.from('GET'), listener: 'bot' | 'private' = 'bot') {
    this.bytes = bytes
    this.listener = listener
  }
  readonly #handle = { fd: 9, readStop: () => 0, readStart: () => 0 }
  handle() {
    return this.isOpen ? this.#handle : undefined
  }
  handedOver() {
    this.state = 'handed over'
  }
  refuse(error: { readonly code: string }) {
    this.state = error.code
  }
}

const big = () => new Connection(Buffer.alloc(handOffQueueBytesMax / 2))

class Channel implements HandOffChannel {
  readonly ids: number[] = []
  readonly sent: WaitingConnection[] = []
  isFull = false
  unsendable: WaitingConnection | undefined
  /** The ids of the connections that the worker has not received yet. */
  unread: number[] = []
  send(id: number, connection: WaitingConnection) {
    if (connection === this.unsendable) throw new Error('EMSGSIZE')
    this.ids.push(id)
    this.sent.push(connection)
    return !this.isFull
  }
  withdraw() {
    return this.unread.splice(0)
  }
  get last(): number {
    return this.ids.at(-1) ?? -1
  }
}

/** Acknowledges all connections up to the last one that was sent. */
function acknowledge(handOff: HandOff, channel: Channel, lostIds: readonly number[] = []): void {
  handOff.acknowledge(channel, { id: channel.last, lostIds })
}

function setUp(connections = 3, inFlightMax = 1) {
  const clock = new FakeClock()
  const handOff = new HandOff(clock, { inFlightMax })
  const waiting = Array.from({ length: connections }, () => new Connection())
  for (const connection of waiting) handOff.submit(connection)
  return { clock, handOff, waiting, states: () => waiting.map(({ state }) => state) }
}

test('a limited number of connections is in flight, and each is closed in the primary when it is acknowledged', () => {
  const { handOff, waiting, states } = setUp(4, 2)
  const channel = new Channel()
  handOff.attach(channel)
  assert.deepEqual(channel.sent, waiting.slice(0, 2))
  assert.deepEqual(states(), ['waiting', 'waiting', 'waiting', 'waiting'])
  handOff.acknowledge(channel, { id: channel.ids[0] ?? 0, lostIds: [] })
  assert.deepEqual(channel.sent, waiting.slice(0, 3))
  assert.deepEqual(states(), ['handed over', 'waiting', 'waiting', 'waiting'])
  acknowledge(handOff, channel)
  assert.deepEqual(states(), ['handed over', 'handed over', 'handed over', 'waiting'])
  acknowledge(handOff, channel)
  assert.equal(handOff.waiting, 0)
  assert.equal(channel.sent.length, 4)
})

test('connections that a dead worker did not acknowledge go to its successor first, in order', () => {
  const { handOff, waiting } = setUp(4, 2)
  const [dead, successor] = [new Channel(), new Channel()]
  handOff.attach(dead)
  handOff.acknowledge(dead, { id: dead.ids[0] ?? 0, lostIds: [] })
  handOff.detach(dead)
  handOff.attach(successor)
  acknowledge(handOff, dead)
  assert.deepEqual(successor.sent, waiting.slice(1, 3))
  acknowledge(handOff, successor)
  assert.deepEqual(successor.sent, waiting.slice(1))
})

test('a successor that is attached early does not get connections that its predecessor may still take', () => {
  const { handOff, waiting, states } = setUp(4, 2)
  const [old, successor] = [new Channel(), new Channel()]
  handOff.attach(old)
  handOff.attach(successor)
  assert.equal(successor.sent.length, 0)
  handOff.acknowledge(old, { id: old.ids[0] ?? 0, lostIds: [] })
  assert.deepEqual(successor.sent, [waiting[2]])
  acknowledge(handOff, successor)
  assert.deepEqual(states(), ['handed over', 'waiting', 'handed over', 'waiting'])
  handOff.detach(old)
  assert.deepEqual(successor.sent, [waiting[2], waiting[3], waiting[1]])
})

test('without a worker each connection is refused after 4 s', async () => {
  const { clock, handOff, states } = setUp(1)
  await clock.advance(1_000)
  const later = new Connection(Buffer.from('GET'), 'private')
  handOff.submit(later)
  await clock.advance(2_999)
  assert.deepEqual(states(), ['waiting'])
  await clock.advance(1)
  assert.deepEqual(states(), ['UNAVAILABLE'])
  await clock.advance(1_000)
  assert.equal(later.state, 'STORE_UNAVAILABLE')
  assert.equal(handOff.waiting, 0)
  assert.equal(clock.timers, 0)
})

test('a connection that a worker received is not refused while that worker lives, and is refused in time when it dies', async () => {
  const { clock, handOff, states } = setUp(2)
  const channel = new Channel()
  handOff.attach(channel)
  await clock.advance(10_000)
  assert.deepEqual(states(), ['waiting', 'UNAVAILABLE'])
  assert.equal(clock.timers, 0)
  handOff.detach(channel)
  await clock.advance(0)
  assert.deepEqual(states(), ['UNAVAILABLE', 'UNAVAILABLE'])
})

test('connections that a worker does not receive for 4 s are taken back and refused, and younger ones are sent again', async () => {
  const { clock, handOff, waiting, states } = setUp(2, 3)
  const channel = new Channel()
  handOff.attach(channel)
  await clock.advance(1_000)
  const younger = new Connection()
  handOff.submit(younger)
  channel.unread = channel.ids.slice(1)
  await clock.advance(2_999)
  assert.deepEqual(states(), ['waiting', 'waiting'])
  await clock.advance(1)
  assert.deepEqual(states(), ['waiting', 'UNAVAILABLE'])
  assert.deepEqual(channel.sent, [...waiting, younger, younger])
  handOff.acknowledge(channel, { id: channel.ids[0] ?? 0, lostIds: [] })
  assert.deepEqual(states(), ['handed over', 'UNAVAILABLE'])
  acknowledge(handOff, channel)
  assert.equal(younger.state, 'handed over')
  assert.equal(handOff.waiting, 0)
})

test('a descriptor that did not arrive is sent again a moment later, before those that came after it', async () => {
  const { clock, handOff, waiting, states } = setUp(4, 3)
  const channel = new Channel()
  handOff.attach(channel)
  acknowledge(handOff, channel, channel.ids.slice(0, 2))
  assert.equal(channel.sent.length, 3)
  assert.deepEqual(states(), ['waiting', 'waiting', 'handed over', 'waiting'])
  await clock.advance(50)
  assert.deepEqual(channel.sent.slice(3), [waiting[0], waiting[1], waiting[3]])
})

test('a connection for which there is no room is sent again a moment later', async () => {
  const { clock, handOff, waiting } = setUp(2, 2)
  const channel = new Channel()
  channel.isFull = true
  handOff.attach(channel)
  assert.deepEqual(channel.sent, [waiting[0]])
  channel.isFull = false
  await clock.advance(50)
  assert.deepEqual(channel.sent, [waiting[0], waiting[0], waiting[1]])
  acknowledge(handOff, channel)
  assert.equal(handOff.waiting, 0)
})

test('a connection for which there was no room is sent as soon as the worker has made room', () => {
  const { handOff, states } = setUp(3, 2)
  const channel = new Channel()
  handOff.attach(channel)
  const { last } = channel
  channel.isFull = true
  handOff.acknowledge(channel, { id: 1, lostIds: [] })
  assert.equal(channel.sent.length, 3)
  channel.isFull = false
  handOff.acknowledge(channel, { id: last, lostIds: [] })
  assert.equal(channel.sent.length, 4)
  acknowledge(handOff, channel)
  assert.deepEqual(states(), ['handed over', 'handed over', 'handed over'])
})

test('a connection that closed meanwhile is skipped', () => {
  const { handOff, waiting } = setUp(2)
  for (const connection of waiting.slice(0, 1)) connection.isOpen = false
  const channel = new Channel()
  handOff.attach(channel)
  assert.deepEqual(channel.sent, [waiting[1]])
})

test('a connection past the limit is refused immediately', () => {
  const { handOff } = setUp(handOffQueueMax)
  const over = new Connection()
  handOff.submit(over)
  assert.equal(over.state, 'UNAVAILABLE')
})

test('one worker keeps only its share of the waiting connections', () => {
  const handOff = new HandOff(new FakeClock(), { inFlightMax: 1, waitingMax: 2 })
  const channel = new Channel()
  handOff.attach(channel)
  const [first, second, third, fourth] = Array.from({ length: 4 }, () => new Connection())
  for (const connection of [first!, second!, third!]) handOff.submit(connection)
  assert.equal(second!.state, 'waiting')
  assert.equal(third!.state, 'UNAVAILABLE')
  acknowledge(handOff, channel)
  handOff.submit(fourth!)
  assert.equal(fourth!.state, 'waiting')
})

test('the first bytes that wait are limited, too, and are freed again', () => {
  const handOff = new HandOff(new FakeClock())
  const [first, second, third] = [big(), big(), big()]
  for (const connection of [first, second, third]) handOff.submit(connection)
  assert.equal(second.state, 'waiting')
  assert.equal(third.state, 'UNAVAILABLE')
  const channel = new Channel()
  handOff.attach(channel)
  const fourth = big()
  handOff.submit(fourth)
  assert.equal(fourth.state, 'waiting')
})

test('at the end all waiting connections are refused', () => {
  const { handOff, states } = setUp(2)
  handOff.refuseAll()
  assert.deepEqual(states(), ['UNAVAILABLE', 'UNAVAILABLE'])
})

test('a connection that can never be sent is refused and delays none after it', () => {
  const { handOff, waiting, states } = setUp(3, 3)
  const channel = new Channel()
  channel.unsendable = waiting[1]
  handOff.attach(channel)
  acknowledge(handOff, channel)
  assert.deepEqual(states(), ['handed over', 'UNAVAILABLE', 'handed over'])
})
