import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import {
  bytesOf,
  clientAddressesMax,
  ClientTable,
  clientTableBytes,
  clientKey,
} from '../../../src/admission/client-table.ts'
import { clientAddress } from '../../../src/http/client.ts'

const startMs = 1_800_000_000_000
const minuteMs = 60_000
const hourMs = 60 * minuteMs
const address = '198.51.100.1'
const compareExchange = Atomics.compareExchange.bind(Atomics)

function newTable(places = 64): ClientTable {
  return new ClientTable(new SharedArrayBuffer(bytesOf(places)), 0, places)
}

/** Returns how many slots this address gets at this moment, at most `tries`. */
function take(table: ClientTable, nowMs: number, tries = 1_000): number {
  let granted = 0
  while (granted < tries && table.takeCreationSlot(address, nowMs).ok) granted++
  return granted
}

function retryAfterS(table: ClientTable, nowMs: number): number {
  const slot = table.takeCreationSlot(address, nowMs)
  return slot.ok ? 0 : slot.retryAfterS
}

test('an address gets 20 slots, and each of them again 60 s after it was used', () => {
  const table = newTable()
  assert.equal(take(table, startMs, 5), 5)
  assert.equal(take(table, startMs + 10_000), 15)
  assert.equal(retryAfterS(table, startMs + 10_000), 50)
  assert.equal(retryAfterS(table, startMs + minuteMs - 1), 1)
  assert.equal(take(table, startMs + minuteMs), 5)
  assert.equal(retryAfterS(table, startMs + minuteMs), 10)
  assert.equal(take(table, startMs + 70_000), 15)
})

test('no 60 s have more than 20 slots and no hour more than 600, at any pace', () => {
  for (const stepMs of [100, 1_500, 2_900, 5_900, 6_100]) {
    const table = newTable()
    const granted: number[] = []
    for (let nowMs = startMs; nowMs < startMs + 3 * hourMs; nowMs += stepMs) {
      if (table.takeCreationSlot(address, nowMs).ok) granted.push(nowMs)
    }
    granted.forEach((atMs, index) => {
      assert.ok((granted[index - 20] ?? 0) <= atMs - minuteMs, `20 in 60 s at a step of ${stepMs}`)
      assert.ok(
        (granted[index - 600] ?? 0) <= atMs - hourMs,
        `600 in an hour at a step of ${stepMs}`,
      )
    })
    const due = Math.min(3 * 600, (3 * hourMs) / stepMs)
    assert.ok(granted.length > due * 0.8, `only ${granted.length} of ${due} at a step of ${stepMs}`)
  }
})

test('after 600 in half an hour a slot comes back when the first ones are 60 to 64 minutes old', () => {
  const table = newTable()
  let nowMs = startMs
  for (let minute = 0; minute < 30; minute++, nowMs += minuteMs)
    assert.equal(take(table, nowMs), 20)
  const waitMs = retryAfterS(table, nowMs) * 1_000
  const backMs = nowMs + waitMs
  assert.ok(backMs >= startMs + hourMs && backMs <= startMs + hourMs + 4 * minuteMs)
  assert.equal(take(table, backMs - 1_001), 0)
  assert.equal(take(table, backMs), 20, 'the announced moment is the right one')
})

test('refusals do not delay an address that keeps trying', () => {
  const table = newTable()
  assert.equal(take(table, startMs), 20)
  for (let nowMs = startMs; nowMs < startMs + minuteMs; nowMs += 100) {
    assert.equal(table.takeCreationSlot(address, nowMs).ok, false)
  }
  assert.equal(take(table, startMs + minuteMs), 20)
})

test('addresses do not use up the slots of each other', () => {
  const table = newTable()
  assert.equal(take(table, startMs), 20)
  assert.deepEqual(table.takeCreationSlot('198.51.100.2', startMs), { ok: true })
  assert.equal(table.takeCreationSlot(`::ffff:${address}`, startMs).ok, false)
})

test('one refusal in 3 s is sent immediately, and held refusals do not delay the next one', () => {
  const table = newTable()
  assert.equal(table.mayRefuseNow(address, startMs), true)
  assert.equal(table.mayRefuseNow(address, startMs), false)
  assert.equal(table.mayRefuseNow(address, startMs + 2_999), false)
  assert.equal(table.mayRefuseNow('198.51.100.2', startMs), true)
  assert.equal(table.mayRefuseNow(address, startMs + 3_000), true)
  assert.equal(table.mayRefuseNow(address, startMs + 5_999), false)
})

test('a moment whose milliseconds are 0 mod 2^32 counts like any other', () => {
  const table = newTable()
  const zeroMs = 420 * 2 ** 32
  assert.equal(table.mayRefuseNow(address, zeroMs), true)
  assert.equal(table.mayRefuseNow(address, zeroMs + 1), false)
  assert.equal(take(table, zeroMs), 20)
  assert.equal(take(table, zeroMs + 1), 0)
})

test('a clock that is set back by hours delays no address', () => {
  const table = newTable()
  assert.equal(take(table, startMs), 20)
  assert.equal(table.mayRefuseNow(address, startMs), true)
  const backMs = startMs - 5 * hourMs
  assert.equal(table.mayRefuseNow(address, backMs), true)
  assert.equal(take(table, backMs), 20)
  assert.equal(take(table, backMs), 0, 'and goes on counting')
  assert.equal(take(table, backMs + minuteMs), 20)
})

test('a read with a slightly older time sees what was counted', () => {
  const table = newTable()
  assert.equal(take(table, startMs), 20)
  assert.equal(take(table, startMs - 500), 0)
  assert.equal(table.mayRefuseNow(address, startMs), true)
  assert.equal(table.mayRefuseNow(address, startMs - 500), false)
})

test('a new address replaces the one that was used least recently', () => {
  // The table has as many places as a search checks.
  const table = newTable(16)
  for (let host = 0; host < 16; host++) {
    const nowMs = startMs + host * 1_000
    for (let slot = 0; slot < 20; slot++) table.takeCreationSlot(`192.0.2.${host}`, nowMs)
  }
  // The oldest is used once more: now 192.0.2.1 is the oldest.
  assert.equal(table.takeCreationSlot('192.0.2.0', startMs + 20_000).ok, false)
  assert.equal(table.takeCreationSlot('192.0.2.99', startMs + 21_000).ok, true)
  assert.equal(table.takeCreationSlot('192.0.2.0', startMs + 22_000).ok, false)
  for (let host = 2; host < 16; host++) {
    assert.equal(table.takeCreationSlot(`192.0.2.${host}`, startMs + 23_000).ok, false, `${host}`)
  }
  assert.equal(table.takeCreationSlot('192.0.2.1', startMs + 24_000).ok, true)
})

test('an address that replaces another one starts with no slots used', () => {
  const table = newTable(1)
  assert.equal(take(table, startMs), 20)
  assert.equal(table.mayRefuseNow(address, startMs), true)
  let granted = 0
  while (table.takeCreationSlot('192.0.2.1', startMs).ok) granted++
  assert.equal(granted, 20)
  assert.equal(take(table, startMs), 20)
  assert.equal(table.mayRefuseNow(address, startMs), true)
})

test('entries used before the clock was set back are replaced first', () => {
  const table = newTable(16)
  const futureMs = startMs + 100 * hourMs
  for (let host = 0; host < 8; host++) table.mayRefuseNow(`192.0.2.${host}`, futureMs)
  for (let host = 8; host < 16; host++) table.mayRefuseNow(`192.0.2.${host}`, startMs)
  for (let host = 16; host < 24; host++) table.mayRefuseNow(`192.0.2.${host}`, startMs + 100)
  for (let host = 8; host < 24; host++) {
    assert.equal(table.mayRefuseNow(`192.0.2.${host}`, startMs + 200), false, `${host}`)
  }
})

test('a search that wraps around the end of the table finds what it put there', () => {
  const table = newTable(17)
  for (let host = 0; host < 17; host++) table.mayRefuseNow(`192.0.2.${host}`, startMs)
  let found = 0
  for (let host = 0; host < 17; host++) {
    if (!table.mayRefuseNow(`192.0.2.${host}`, startMs + 1)) found++
  }
  assert.ok(found >= 15, `${found} of 17 are found`)
})

/** Runs `act`, as another process would, between a reading and the next store that depends on it. */
function atNextStore(t: TestContext, act: () => void, times = 1): void {
  let left = times
  const intercepted = (...args: readonly unknown[]): unknown => {
    if (left > 0) {
      left--
      const rest = left
      left = 0
      act()
      left = rest
    }
    return Reflect.apply(compareExchange, undefined, args)
  }
  Object.assign(Atomics, { compareExchange: intercepted })
  t.after(() => Object.assign(Atomics, { compareExchange }))
}

test('two new addresses that claim one entry at once both get one', (t) => {
  for (let host = 0; host < 16; host++) {
    const table = newTable(2)
    atNextStore(t, () => assert.equal(table.mayRefuseNow(`192.0.2.${host}`, startMs), true))
    assert.equal(table.mayRefuseNow(address, startMs), true)
    assert.equal(table.mayRefuseNow(address, startMs), false)
    assert.equal(table.mayRefuseNow(`192.0.2.${host}`, startMs), false, `192.0.2.${host}`)
  }
})

test('a new address that two processes add at once is counted in one entry', (t) => {
  const table = newTable()
  atNextStore(t, () => assert.equal(take(table, startMs), 20))
  assert.deepEqual(table.takeCreationSlot(address, startMs), { ok: false, retryAfterS: 60 })
})

test('the last slot, and the immediate refusal, go to one of two processes', (t) => {
  const table = newTable()
  assert.equal(take(table, startMs, 19), 19)
  atNextStore(t, () => assert.equal(take(table, startMs), 1))
  assert.deepEqual(table.takeCreationSlot(address, startMs), { ok: false, retryAfterS: 1 })
  atNextStore(t, () => assert.equal(table.mayRefuseNow(address, startMs), true))
  assert.equal(table.mayRefuseNow(address, startMs), false)
})

test('an address that repeatedly loses its entry to others is refused and does not hang', (t) => {
  const table = newTable(1)
  let host = 0
  const claim = (): void => void table.mayRefuseNow(`192.0.2.${host++}`, startMs)
  atNextStore(t, claim, 1_000)
  assert.deepEqual(table.takeCreationSlot(address, startMs), { ok: false, retryAfterS: 1 })
  assert.equal(table.mayRefuseNow(address, startMs), false)
  assert.equal(host, 8)
})

test('at its limit the table keeps most addresses, replaces the oldest and does not grow', () => {
  const region = new SharedArrayBuffer(clientTableBytes)
  const table = new ClientTable(region, 0)
  for (let index = 0; index < clientAddressesMax; index++) {
    assert.equal(table.mayRefuseNow(ipv4Text(index), startMs), true)
  }
  const keys = new BigInt64Array(region, 0, clientAddressesMax)
  const kept = keys.reduce((count, key) => count + (key === 0n ? 0 : 1), 0)
  assert.ok(kept > clientAddressesMax * 0.9, `${kept} of ${clientAddressesMax} are kept`)

  const endMs = startMs + 50_000
  for (let index = 0; index < 50_000; index++) {
    assert.equal(table.mayRefuseNow(ipv6Text(index), startMs + index), true)
  }
  for (let index = 49_000; index < 50_000; index++) {
    assert.equal(table.mayRefuseNow(ipv6Text(index), endMs), false, ipv6Text(index))
  }
})

function ipv4Text(index: number): string {
  return `10.${index >>> 16}.${(index >>> 8) & 255}.${index & 255}`
}

function ipv6Text(index: number): string {
  return `2001:db8:${(index >>> 8).toString(16)}:${(index & 255).toString(16)}::1`
}

function same(...addresses: string[]): void {
  for (const each of addresses) {
    assert.deepEqual(clientKey(each), clientKey(addresses[0]!), `${each} and ${addresses[0]}`)
  }
}

function distinct(...addresses: string[]): void {
  const keys = addresses.map((each) => JSON.stringify(clientKey(each)))
  assert.equal(new Set(keys).size, addresses.length, addresses.join(' '))
}

test('IPv4 addresses count one by one, however they are written', () => {
  same('203.0.113.7', '::ffff:203.0.113.7', '::FFFF:cb00:7107', '0:0:0:0:0:ffff:203.0.113.7')
  distinct('203.0.113.7', '203.0.113.8', '7.113.0.203', '0.0.0.0', '255.255.255.255')
})

test('IPv6 addresses count by their /64, however they are written', () => {
  same('2001:db8:1:2::1', '2001:DB8:1:2:ffff:ffff:ffff:ffff', '2001:0db8:0001:0002:0:0:0:9')
  distinct('2001:db8:1:2::1', '2001:db8:1:3::1', '2001:db8:2:2::1', '2001:db9:1:2::1')
  same('fe80::1', 'fe80::2%eth0')
  same('2001:db8:1:2::1', clientAddress('2001:db8:1:2::1', undefined))
  distinct(...['2001:db8:1:2::1', '2001:db8:1:3::1'].map((each) => clientAddress(each, undefined)))
})

test('no IPv6 prefix is mistaken for an IPv4 address or for no address', () => {
  distinct('0.0.0.9', '0:1:0:9::', '2001:db8:0:9::', '', '::1')
  distinct('0.0.0.0', '0:1::', '')
  same('::', '::1', '::5', '::9.9.9.9')
  distinct('::9.9.9.9', '9.9.9.9')
})

test('all texts that are no addresses share one key', () => {
  same(
    '',
    'unix:',
    'localhost',
    '1',
    '0x7f.1',
    '1.2.3',
    '1.2.3.4.5',
    '256.1.1.1',
    ':::',
    'x'.repeat(9_999),
  )
})

test('no address has the key of an empty entry', () => {
  for (const each of ['', '::', '::1', '0.0.0.0', '::ffff:0.0.0.0', '0:0:0:1::']) {
    assert.notDeepEqual(clientKey(each), { high: 0, low: 0 }, each)
  }
})
