import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ConnectionMessage } from '../../../src/cluster/channel-message.ts'
import {
  HandOff,
  type HandOffChannel,
  type WaitingConnection,
} from '../../../src/cluster/hand-off.ts'
import { handOffQueueBytesMax, handOffQueueMax } from '../../../src/limits.ts'
import { FakeClock } from '../../support/fake-clock.ts'

class Connection implements WaitingConnection {
  readonly listener
  readonly peerAddress = '192.0.2.1'
  readonly bytes: Buffer
  isOpen = true
  state = 'waiting'
  constructor(bytes = Buffer.from('GET'), listener: 'bot' | 'private' = 'bot') {
    this.bytes = bytes
    this.listener = listener
  }
  handle() {
    return this.isOpen ? this : undefined
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
  readonly sent: ConnectionMessage[] = []
  readonly handles: object[] = []
  fail: (() => void) | undefined
  send(message: ConnectionMessage, handle: object, failed: (error: Error) => void) {
    this.sent.push(message)
    this.handles.push(handle)
    this.fail = () => failed(new Error('EAGAIN'))
  }
  get last(): number {
    return this.sent.at(-1)?.id ?? -1
  }
}

function setUp(connections = 3) {
  const clock = new FakeClock()
  const handOff = new HandOff(clock)
  const waiting = Array.from({ length: connections }, () => new Connection())
  for (const connection of waiting) handOff.submit(connection)
  return { clock, handOff, waiting, states: () => waiting.map(({ state }) => state) }
}

test('one connection is in flight at a time, and closed here once it is acknowledged', () => {
  const { handOff, waiting, states } = setUp()
  const channel = new Channel()
  handOff.attach(channel)
  assert.deepEqual(channel.handles, [waiting[0]])
  assert.deepEqual(states(), ['waiting', 'waiting', 'waiting'])
  handOff.acknowledge(channel.last)
  assert.deepEqual(channel.handles, [waiting[0], waiting[1]])
  assert.deepEqual(states(), ['handed over', 'waiting', 'waiting'])
  handOff.acknowledge(channel.last + 7)
  assert.equal(channel.sent.length, 2)
})

test('what a dead worker has not acknowledged goes to its successor first, in order', () => {
  const { handOff, waiting } = setUp()
  const [dead, successor] = [new Channel(), new Channel()]
  handOff.attach(dead)
  handOff.acknowledge(dead.last)
  handOff.detach(dead)
  const late = dead.last
  handOff.attach(successor)
  handOff.acknowledge(late)
  assert.deepEqual(successor.handles, [waiting[1]])
  handOff.acknowledge(successor.last)
  assert.deepEqual(successor.handles, [waiting[1], waiting[2]])
})

test('a successor that is attached early does not get what its predecessor may still take', () => {
  const { handOff, waiting } = setUp()
  const [old, successor] = [new Channel(), new Channel()]
  handOff.attach(old)
  handOff.attach(successor)
  assert.equal(successor.sent.length, 0)
  handOff.acknowledge(old.last)
  assert.deepEqual(successor.handles, [waiting[1]])
  handOff.detach(old)
  assert.equal(successor.sent.length, 1)
})

test('without a worker a connection is refused after 4 s, each in its own time', async () => {
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

test('the connection in flight is never refused while its worker lives, and in time when it dies', async () => {
  const { clock, handOff, states } = setUp(2)
  const channel = new Channel()
  handOff.attach(channel)
  await clock.advance(10_000)
  assert.deepEqual(states(), ['waiting', 'UNAVAILABLE'])
  handOff.detach(channel)
  await clock.advance(0)
  assert.deepEqual(states(), ['UNAVAILABLE', 'UNAVAILABLE'])
})

test('a descriptor that did not arrive is sent again a moment later', async () => {
  const { clock, handOff, waiting } = setUp(1)
  const channel = new Channel()
  handOff.attach(channel)
  handOff.notReceived(channel)
  assert.equal(channel.sent.length, 1)
  await clock.advance(50)
  channel.fail?.()
  await clock.advance(50)
  assert.deepEqual(channel.handles, [waiting[0], waiting[0], waiting[0]])
})

test('a connection that closed meanwhile is left out', () => {
  const { handOff, waiting } = setUp(2)
  for (const connection of waiting.slice(0, 1)) connection.isOpen = false
  const channel = new Channel()
  handOff.attach(channel)
  assert.deepEqual(channel.handles, [waiting[1]])
})

test('a connection past the bound is refused at once', () => {
  const { handOff } = setUp(handOffQueueMax)
  const over = new Connection()
  handOff.submit(over)
  assert.equal(over.state, 'UNAVAILABLE')
})

test('the first bytes that wait are bounded too, and counted down again', () => {
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

test('at the end everything that waits is refused', () => {
  const { handOff, states } = setUp(2)
  handOff.refuseAll()
  assert.deepEqual(states(), ['UNAVAILABLE', 'UNAVAILABLE'])
})
