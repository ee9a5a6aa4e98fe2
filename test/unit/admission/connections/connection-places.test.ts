import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  ConnectionPlaces,
  type ConnectionPlace,
  type PlaceState,
} from '../../../../src/admission/connections/connection-places.ts'
import type { ListenerKind } from '../../../../src/http/listener.ts'

const placesMax = 32
/** An eighth: the share of an address, and the places that are reserved for the private listener. */
const share = 4

class Crowd {
  readonly busy = new Set<string>()
  readonly places = new ConnectionPlaces<string>(
    placesMax,
    (connection) => !this.busy.has(connection),
  )
  readonly #open = new Map<string, ConnectionPlace<string>>()
  #addresses = 0

  /** Adds a connection from a new address, unless one is given. */
  add(
    name: string,
    {
      state = 'idle',
      listener = 'bot',
      address = `198.51.100.${++this.#addresses}`,
    }: { state?: PlaceState; listener?: ListenerKind; address?: string } = {},
  ): ConnectionPlace<string> {
    const place = this.places.open(name, { listener, clientAddress: address })
    this.places.move(place, state)
    this.#open.set(name, place)
    return place
  }

  addMany(count: number, name: string, options: Parameters<Crowd['add']>[1] = {}): void {
    for (let nth = 0; nth < count; nth++) this.add(`${name} ${nth}`, options)
  }

  close(name: string): void {
    const place = this.#open.get(name)
    assert(place !== undefined)
    this.places.close(place)
  }

  /** Lets connections give way, one after the other, and returns their names. */
  giveUp(
    count: number,
    listener: ListenerKind = 'bot',
    clientAddress = '192.0.2.1',
  ): (string | undefined)[] {
    return Array.from({ length: count }, () => {
      const place = this.places.toGiveWay({ listener, clientAddress })
      if (place !== undefined) this.places.close(place)
      return place?.connection
    })
  }
}

test('connections without a head give way first, then idle ones, then incomplete requests, then streams at rest, then held refusals, and busy ones never', () => {
  const crowd = new Crowd()
  for (const state of ['busy', 'held', 'resting', 'receiving', 'idle', 'headless'] as const) {
    crowd.add(`old ${state}`, { state })
    crowd.add(`young ${state}`, { state })
  }
  assert.deepEqual(crowd.giveUp(11), [
    'old headless',
    'young headless',
    'old idle',
    'young idle',
    'old receiving',
    'young receiving',
    'old resting',
    'young resting',
    'old held',
    'young held',
    undefined,
  ])
})

test('the age of a connection counts from its last change of state', () => {
  const crowd = new Crowd()
  const first = crowd.add('first')
  crowd.add('second')
  crowd.places.move(first, 'busy')
  crowd.places.move(first, 'idle')
  assert.deepEqual(crowd.giveUp(3), ['second', 'first', undefined])
})

test('a connection that has become busy without a notice does not give way', () => {
  const crowd = new Crowd()
  crowd.addMany(2, 'body', { state: 'receiving' })
  crowd.busy.add('body 0')
  assert.deepEqual(crowd.giveUp(2), ['body 1', undefined])
})

test('an address over its share gives way before older and idler connections of others', () => {
  const crowd = new Crowd()
  crowd.addMany(8, 'other')
  crowd.addMany(3, 'some of it', { address: '203.0.113.1', state: 'held' })
  crowd.addMany(share, 'the rest of it', { address: '203.0.113.1', state: 'held' })
  assert.deepEqual(crowd.giveUp(4), ['some of it 0', 'some of it 1', 'some of it 2', 'other 0'])
})

test('no other connection gives way to one of an address over its share', () => {
  const crowd = new Crowd()
  const address = '203.0.113.1'
  crowd.add('other')
  crowd.addMany(share, 'poll', { address, state: 'busy' })
  assert.deepEqual(crowd.giveUp(1, 'bot', address), ['other'])
  crowd.add('other')
  crowd.add('one more', { address, state: 'busy' })
  assert.deepEqual(crowd.giveUp(1, 'bot', address), [undefined])
  assert.deepEqual(crowd.giveUp(1), ['other'])
})

test('the address with the most connections gives way first', () => {
  const crowd = new Crowd()
  crowd.addMany(share + 1, 'much', { address: '203.0.113.1' })
  crowd.addMany(share + 3, 'more', { address: '203.0.113.2' })
  assert.deepEqual(crowd.giveUp(4), ['more 0', 'more 1', 'much 0', 'more 2'])
})

test('an address that repeatedly exceeds its share gives way in the same order', () => {
  const crowd = new Crowd()
  crowd.add('other')
  const own = { address: '203.0.113.1' }
  crowd.addMany(share + 1, 'own', own)
  for (let nth = share; nth > share / 2; nth--) crowd.close(`own ${nth}`)
  crowd.addMany(share, 'new', { ...own, state: 'headless' })
  // Three of the first ones are left, so three must give way before the address is within its share again.
  assert.deepEqual(crowd.giveUp(4), ['new 0', 'new 1', 'new 2', 'new 3'])
})

test('the addresses of one IPv6 network have one share', () => {
  const crowd = new Crowd()
  crowd.add('other')
  for (let nth = 0; nth <= share; nth++) {
    crowd.add(`of the network ${nth}`, { address: `2001:db8:0:1::${nth + 1}` })
  }
  crowd.add('of another', { address: '2001:db8:0:2::1' })
  assert.deepEqual(crowd.giveUp(2), ['of the network 0', 'other'])
})

test('a reverse proxy has no share, at a Unix socket or after it names a client', () => {
  const crowd = new Crowd()
  crowd.add('other')
  crowd.addMany(share + 4, 'unix', { address: '' })
  crowd.addMany(share + 4, 'proxied', { address: '10.0.0.1' })
  crowd.places.noteProxy(crowd.add('named', { address: '10.0.0.1' }))
  assert.deepEqual(crowd.giveUp(2), ['other', 'unix 0'])
})

test('connections of bots leave the reserved places to the private listener', () => {
  const crowd = new Crowd()
  crowd.addMany(placesMax - share, 'bot', { state: 'busy' })
  assert.ok(!crowd.places.hasRoom('bot'))
  assert.ok(crowd.places.hasRoom('private'))
  assert.deepEqual(crowd.giveUp(1), [undefined])
})

test('a private connection within the reserve does not give way to one of a bot', () => {
  const crowd = new Crowd()
  crowd.addMany(placesMax - share, 'bot', { state: 'busy' })
  crowd.addMany(share, 'producer', { listener: 'private' })
  assert.deepEqual(crowd.giveUp(1, 'bot'), [undefined])
  assert.deepEqual(crowd.giveUp(1, 'private'), ['producer 0'])
})

test('private connections past the reserve give way first, so they crowd out no bots', () => {
  const crowd = new Crowd()
  crowd.addMany(share, 'bot')
  crowd.addMany(placesMax - share, 'producer', { listener: 'private' })
  assert.ok(!crowd.places.hasRoom('bot'))
  assert.deepEqual(crowd.giveUp(2, 'bot'), ['producer 0', 'producer 1'])
})

test('connections without a place count, too', () => {
  const crowd = new Crowd()
  crowd.addMany(4, 'bot')
  assert.ok(crowd.places.hasRoom('bot', placesMax - 5))
  assert.ok(!crowd.places.hasRoom('bot', placesMax - 4))
})

test('a place that is returned twice counts once', () => {
  const crowd = new Crowd()
  const place = crowd.add('once')
  crowd.places.close(place)
  crowd.places.close(place)
  crowd.places.move(place, 'headless')
  assert.equal(crowd.places.count, 0)
  assert.deepEqual(crowd.giveUp(1), [undefined])
})

/** Opens connections of one address, as behind a proxy, that show a key, and returns which of them got a place. */
function withKey(crowd: Crowd, holder: string, { count, state }: WithKey): boolean[] {
  return Array.from({ length: count }, (_, nth) => {
    const name = `${holder} ${nth}`
    const place = crowd.add(name, {
      listener: 'private',
      address: '203.0.113.9',
      state: 'headless',
    })
    const isFree = crowd.places.countFor(place, holder)
    const giver = isFree ? undefined : crowd.places.toGiveWayTo(place)
    if (giver !== undefined) crowd.places.close(giver)
    const hasPlace = isFree || giver !== undefined
    if (hasPlace) crowd.places.move(place, state)
    else crowd.places.close(place)
    return hasPlace
  })
}

interface WithKey {
  readonly count: number
  readonly state: PlaceState
}

test('a key over its share leaves a share free, and its own streams at rest give way to its new ones', () => {
  const crowd = new Crowd()
  crowd.add('other', { listener: 'private' })
  const hadPlace = withKey(crowd, 'greedy', { count: 2 * placesMax, state: 'resting' })
  assert.ok(hadPlace.every(Boolean))
  assert.equal(crowd.places.count, placesMax - share)
  // The oldest ones have gone, and the next newcomer, whoever it is, takes the place of the oldest that is left.
  assert.deepEqual(crowd.giveUp(2, 'private'), ['greedy 37', 'greedy 38'])
})

test('a key over its share whose connections are all busy gets no further one, and others do', () => {
  const crowd = new Crowd()
  const hadPlace = withKey(crowd, 'greedy', { count: 2 * placesMax, state: 'busy' })
  assert.equal(hadPlace.filter(Boolean).length, placesMax - share)
  assert.deepEqual(withKey(crowd, 'other', { count: 2, state: 'busy' }), [true, true])
  assert.deepEqual(withKey(crowd, 'root', { count: 2, state: 'busy' }), [true, true])
})

test('keys leave some places to connections that have shown none, and to the admin key', () => {
  const crowd = new Crowd()
  for (let nth = 0; nth < placesMax; nth++)
    withKey(crowd, `key ${nth}`, { count: 1, state: 'busy' })
  assert.ok(crowd.places.count < placesMax)
  assert.ok(crowd.places.hasRoom('private'))
  assert.deepEqual(withKey(crowd, 'root', { count: 1, state: 'busy' }), [true])
})

test('connections of one address with different keys count for their keys', () => {
  const crowd = new Crowd()
  for (const holder of ['a', 'b', 'c', 'd']) withKey(crowd, holder, { count: share, state: 'idle' })
  crowd.add('older')
  // Nobody is over its share, so the oldest one gives way, to this address, too.
  assert.deepEqual(crowd.giveUp(1, 'private', '203.0.113.9'), ['a 0'])
})
