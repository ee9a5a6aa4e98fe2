import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import type { ServerResponse } from 'node:http'
import { test } from 'node:test'
import { pipelinedPerTurnMax } from '../../../../src/http/limits.ts'
import { callsWaitingMax, CallTurns } from '../../../../src/admission/budgets/call-turns.ts'
import { FakeClock } from '../../../support/kit/fake-clock.ts'

class Connection extends EventEmitter {
  isRead = true
  readonly destroyed = false

  pause(): void {
    this.isRead = false
  }

  resume(): void {
    this.isRead = true
  }
}

interface Call {
  readonly url: string
  readonly isPipelined?: boolean
}

/** A clock whose turns end when the test says so. */
class TurnClock extends FakeClock {
  readonly #soon: (() => void)[] = []

  override soon(fire: () => void): void {
    this.#soon.push(fire)
  }

  endTurn(): void {
    for (const fire of this.#soon.splice(0)) fire()
  }
}

class World {
  readonly clock = new TurnClock()
  readonly begun: string[] = []
  /** How long the key `over` must wait. */
  waitMs = 0
  readonly turns = new CallTurns(
    this.clock,
    (holder) => (holder === 'over' ? this.waitMs : 0),
    ({ url = '' }) => void this.begun.push(url),
  )

  call(holder: string, connection: Connection, { url, isPipelined = true }: Call): boolean {
    const response = { socket: isPipelined ? null : connection, req: { url, socket: connection } }
    // oxlint-disable-next-line no-unsafe-type-assertion -- only these fields are used
    return this.turns.enter(holder, response as unknown as ServerResponse)
  }

  /** Ends a turn of the event loop. Returns how many calls began in the next one. */
  turn(): number {
    const { length } = this.begun
    this.clock.endTurn()
    return this.begun.length - length
  }
}

test('a key has a number of pipelined calls in a turn on all its connections, and each connection keeps its order', () => {
  const world = new World()
  const connections = [new Connection(), new Connection()]
  const isRead = (): boolean[] => connections.map((connection) => connection.isRead)
  const calls = 2 * pipelinedPerTurnMax
  for (const [at, connection] of connections.entries()) {
    for (let nth = 0; nth < calls; nth++) world.call('a', connection, { url: `${at} ${nth}` })
  }
  assert.equal(world.begun.length, pipelinedPerTurnMax)
  assert.deepEqual(isRead(), [false, false])
  // Another key, and a call that is not pipelined, do not wait.
  world.call('b', new Connection(), { url: 'b' })
  world.call('a', new Connection(), { url: 'alone', isPipelined: false })
  assert.deepEqual(world.begun.splice(pipelinedPerTurnMax), ['b', 'alone'])
  for (let nth = 0; nth < 3; nth++) assert.equal(world.turn(), pipelinedPerTurnMax)
  assert.equal(world.turn(), 0)
  for (const at of [0, 1]) {
    const ofConnection = world.begun.filter((url) => url.startsWith(`${at} `))
    const sent = Array.from({ length: calls }, (_, nth) => `${at} ${nth}`)
    assert.deepEqual(ofConnection, sent)
  }
  world.turn()
  assert.deepEqual(isRead(), [true, true])
})

test('the connections of a key are read again one after the other, when none of its calls waits', () => {
  const world = new World()
  const connections = [new Connection(), new Connection(), new Connection()]
  const areRead = (): number => connections.filter(({ isRead }) => isRead).length
  for (const connection of connections) {
    for (let nth = 0; nth < 2 * pipelinedPerTurnMax; nth++) {
      world.call('a', connection, { url: `${nth}` })
    }
  }
  for (let turn = 0; turn < 5; turn++) world.turn()
  assert.equal(world.begun.length, 6 * pipelinedPerTurnMax)
  const read = [areRead()]
  for (let turn = 0; turn < 3; turn++) {
    world.turn()
    read.push(areRead())
  }
  assert.deepEqual(read, [0, 1, 2, 3])
})

test('a key has half of the places for waiting calls', () => {
  const world = new World()
  const connection = new Connection()
  let taken = 0
  while (taken < callsWaitingMax && world.call('a', connection, { url: 'a' })) taken++
  assert.equal(taken, pipelinedPerTurnMax + callsWaitingMax / 2)
  const other = new Connection()
  for (let nth = 0; nth < 2 * pipelinedPerTurnMax; nth++) {
    assert.ok(world.call('b', other, { url: 'b' }))
  }
  connection.emit('close')
  assert.ok(world.call('a', new Connection(), { url: 'a' }))
})

test('all calls of a key over its budget wait until it has paid', async () => {
  const world = new World()
  world.waitMs = 500
  const connection = new Connection()
  world.call('over', connection, { url: '0', isPipelined: false })
  world.call('over', connection, { url: '1' })
  world.call('under', new Connection(), { url: 'under', isPipelined: false })
  assert.deepEqual(world.begun, ['under'])
  await world.clock.advance(499)
  world.waitMs = 0
  assert.equal(world.turn(), 0)
  await world.clock.advance(1)
  assert.deepEqual(world.begun, ['under', '0', '1'])
})

test('the calls of a client that is gone are dropped', () => {
  const world = new World()
  const gone = new Connection()
  for (let nth = 0; nth < 3 * pipelinedPerTurnMax; nth++) world.call('a', gone, { url: `${nth}` })
  gone.emit('close')
  assert.equal(world.turn(), 0)
  assert.ok(world.call('a', new Connection(), { url: 'next' }))
})

test('a connection has one listener for its end, however often its calls wait', () => {
  const world = new World()
  const connection = new Connection()
  for (let times = 0; times < 20; times++) {
    const calls = 2 * pipelinedPerTurnMax
    for (let nth = 0; nth < calls; nth++) world.call('a', connection, { url: `${nth}` })
    for (let turns = 0; turns < 5; turns++) world.turn()
  }
  assert.equal(world.begun.length, 40 * pipelinedPerTurnMax)
  assert.equal(connection.listenerCount('close'), 1)
})

test('calls of several keys on one connection are counted in the line in which they wait', () => {
  const world = new World()
  for (let times = 0; times < 3; times++) {
    const connection = new Connection()
    // The connection waits in the line of `a`, and the calls of `b` on it, too.
    for (let nth = 0; nth <= pipelinedPerTurnMax; nth++) world.call('a', connection, { url: 'a' })
    for (let nth = 0; nth < callsWaitingMax / 4; nth++) world.call('b', connection, { url: 'b' })
    connection.emit('close')
    for (let turns = 0; turns < 5; turns++) world.turn()
  }
  for (const holder of ['a', 'b']) {
    const connection = new Connection()
    let taken = 0
    while (taken < callsWaitingMax && world.call(holder, connection, { url: holder })) taken++
    assert.equal(taken, pipelinedPerTurnMax + callsWaitingMax / 2, holder)
    connection.emit('close')
    for (let turns = 0; turns < 5; turns++) world.turn()
  }
})

test('calls of a second key that go on after those of the first leave no place taken', () => {
  const world = new World()
  const connection = new Connection()
  for (let nth = 0; nth <= pipelinedPerTurnMax; nth++) world.call('a', connection, { url: 'a' })
  // A second connection keeps the line of `b` for the whole test.
  const other = new Connection()
  for (let nth = 0; nth <= pipelinedPerTurnMax; nth++) world.call('b', other, { url: 'b' })
  const calls = callsWaitingMax / 4
  for (let nth = 0; nth < calls; nth++) world.call('b', connection, { url: 'b' })
  while (world.turn() > 0) world.call('b', other, { url: 'b' })
  let taken = 0
  const last = new Connection()
  while (taken < callsWaitingMax && world.call('b', last, { url: 'b' })) taken++
  assert.ok(taken >= callsWaitingMax / 2, `${taken}`)
})
