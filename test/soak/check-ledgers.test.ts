import assert from 'node:assert/strict'
import { test } from 'node:test'
import { checkLedgers } from './check-ledgers.ts'
import type { LedgerEntry, Pushing, Received } from './ledger.ts'

const poller = 100
const hooked = 200

function push(name: string, bot: number, more: Partial<Pushing> = {}): Pushing {
  return { kind: 'push', name, bot, orderingKey: 'a', isKeyed: true, atMs: 0, ...more }
}

function acked(name: string, id: number): LedgerEntry {
  return { kind: 'acked', name, id, atMs: 10 }
}

function received(name: string, bot: number, id: number, more: Partial<Received> = {}): Received {
  const via = bot === poller ? 'poll' : 'webhook'
  return {
    kind: 'received',
    bot,
    id,
    name,
    orderingKey: 'a',
    via,
    isTaken: true,
    atMs: 20,
    ...more,
  }
}

function faultAt(fromMs: number): LedgerEntry[] {
  return [
    { kind: 'fault', fault: 'kill', atMs: fromMs },
    { kind: 'ready', atMs: fromMs + 10 },
  ]
}

/** A push that was refused and delivered nevertheless. */
function refused(isKeyed: boolean): LedgerEntry[] {
  return [
    push('p3', poller, { isKeyed }),
    { kind: 'refused', name: 'p3', code: 'STORE_UNAVAILABLE', atMs: 5 },
    ...(isKeyed ? [acked('p3', 9)] : []),
    received('p3', poller, 9),
  ]
}

/** Four updates for two bots, all of which arrive once and in order. */
function goodLedger(): LedgerEntry[] {
  return [
    push('p1', poller, { line: 'x' }),
    push('p2', poller, { line: 'x' }),
    push('w1', hooked),
    push('w2', hooked),
    acked('p1', 7),
    acked('p2', 8),
    acked('w1', 1_000),
    acked('w2', 1_001),
    received('p1', poller, 7),
    received('p2', poller, 8),
    { kind: 'confirmed', bot: poller, offset: 9, atMs: 30 },
    received('w1', hooked, 1_000),
    received('w2', hooked, 1_001),
  ]
}

function violationsOf(...more: LedgerEntry[]): readonly string[] {
  return checkLedgers([...goodLedger(), ...more]).violations
}

/** The good ledger without the entries that a test removes. */
function without(...taken: LedgerEntry[]): LedgerEntry[] {
  const texts = new Set(taken.map((entry) => JSON.stringify(entry)))
  const left = goodLedger().filter((entry) => !texts.has(JSON.stringify(entry)))
  assert.equal(left.length, goodLedger().length - taken.length)
  return left
}

test('ledgers in which everything arrived once and in order break no rule', () => {
  assert.deepEqual(violationsOf(), [])
})

test('an acknowledged update that nobody received is lost unless it is pending, a dead letter, expired or dropped', () => {
  const rest = without(received('w2', hooked, 1_001))
  const name = 'w2'
  assert.deepEqual(checkLedgers(rest).violations, ['w2 of bot 200 was acknowledged and is lost'])
  const fates: readonly LedgerEntry[] = [
    received(name, hooked, 1_001, { via: 'left' }),
    { kind: 'letter', bot: hooked, id: 1_001, name, reason: 'refused' },
    { kind: 'dropped', bot: hooked, fromMs: 5, toMs: 6 },
    push(name, hooked, { ttlS: 2 }),
  ]
  for (const fate of fates) assert.deepEqual(checkLedgers([...rest, fate]).violations, [])
})

test('a drop excuses neither another bot nor a later push', () => {
  const rest = without(received('w2', hooked, 1_001))
  const lost = ['w2 of bot 200 was acknowledged and is lost']
  const elsewhere: LedgerEntry = { kind: 'dropped', bot: poller, fromMs: 5, toMs: 6 }
  const before: LedgerEntry = { kind: 'dropped', bot: hooked, fromMs: -2, toMs: -1 }
  assert.deepEqual(checkLedgers([...rest, elsewhere]).violations, lost)
  assert.deepEqual(checkLedgers([...rest, before]).violations, lost)
})

test('an id that two updates have, and an update with two ids, are reported', () => {
  const more = push('p3', poller)
  assert.deepEqual(violationsOf(more, acked('p3', 8), received('p3', poller, 9)), [
    'bot 100 has 8 twice: p2 and p3',
    'p3 has two ids: 8 and 9',
  ])
})

test('a key that is acknowledged with another id is reported', () => {
  assert.deepEqual(violationsOf(acked('w2', 1_002)), ['w2 has two ids: 1001 and 1002'])
})

test('a gap in the ids of a bot is reported unless damage explains it', () => {
  const far = [push('p3', poller), acked('p3', 1_000_008), received('p3', poller, 1_000_008)]
  const near = [push('p3', poller), acked('p3', 10), received('p3', poller, 10)]
  const damaged: LedgerEntry = { kind: 'damaged', what: 'a log', atMs: 0 }
  const torn: LedgerEntry = { ...damaged, kind: 'torn' }
  assert.deepEqual(violationsOf(...far), ['the ids of bot 100 step from 8 to 1000008'])
  assert.deepEqual(violationsOf(...far, damaged), [])
  assert.deepEqual(violationsOf(...far, torn), [])
  assert.deepEqual(violationsOf(...near, damaged), ['the ids of bot 100 step from 8 to 10'])
})

test('successive pushes whose ids do not rise are reported', () => {
  const entries = goodLedger().map((entry): LedgerEntry => {
    if (entry.kind !== 'acked' && entry.kind !== 'received') return entry
    return { ...entry, id: entry.id === 7 ? 8 : entry.id === 8 ? 7 : entry.id }
  })
  assert(checkLedgers(entries).violations.includes('p2 got 7 after one before it got 8'))
})

test('an update first received after a later one of its bot or ordering key is reported', () => {
  const swapped = without(received('w1', hooked, 1_000))
  assert.deepEqual(checkLedgers([...swapped, received('w1', hooked, 1_000)]).violations, [
    'w1 (200/1000) came after 1001 of 200 a',
  ])
  const polled = without(received('p1', poller, 7), {
    kind: 'confirmed',
    bot: poller,
    offset: 9,
    atMs: 30,
  })
  assert.deepEqual(checkLedgers([...polled, received('p1', poller, 7)]).violations, [
    'p1 (100/7) came after 8 of 100',
  ])
})

test('an update of another ordering key may overtake', () => {
  const other = [push('w3', hooked, { orderingKey: 'b' }), acked('w3', 1_002)]
  const first = received('w3', hooked, 1_002, { orderingKey: 'b' })
  const [, , , , ...rest] = goodLedger()
  const pushes = goodLedger().slice(0, 4)
  assert.deepEqual(checkLedgers([...pushes, ...other, first, ...rest]).violations, [])
})

test('an update that is received again after it was taken or confirmed is reported unless a fault was near', () => {
  const again = [
    received('w2', hooked, 1_001, { atMs: 9_000 }),
    received('p2', poller, 8, { atMs: 9_000 }),
  ]
  const told = [
    'w2 came again by webhook although its removal was done',
    'p2 came again by poll although its removal was done',
  ]
  assert.deepEqual(violationsOf(...again), told)
  assert.deepEqual(violationsOf(...again, ...faultAt(25)), [])
  assert.deepEqual(violationsOf(...again, ...faultAt(8_000)), told)
})

test('an update may come again if the receiver did not take it or no call confirmed it', () => {
  const untaken = without(received('w2', hooked, 1_001))
  const tries = [received('w2', hooked, 1_001, { isTaken: false }), received('w2', hooked, 1_001)]
  assert.deepEqual(checkLedgers([...untaken, ...tries]).violations, [])
  const unconfirmed = without({ kind: 'confirmed', bot: poller, offset: 9, atMs: 30 })
  assert.deepEqual(checkLedgers([...unconfirmed, received('p2', poller, 8)]).violations, [])
})

test('an update that was refused and is delivered is reported unless it was sent again with its key', () => {
  assert.deepEqual(violationsOf(...refused(false)), ['p3 was refused and is there'])
  assert.deepEqual(violationsOf(...refused(true)), [])
})

test('an update with changed bytes, at another bot, or long after its ttl is reported', () => {
  assert.deepEqual(violationsOf(received('', poller, 9)), [
    'bot 100 has 9, which nobody pushed so: ',
  ])
  const astray = [push('p3', hooked), received('p3', poller, 9)]
  assert(violationsOf(...astray).includes('p3 was pushed to 200 and is at 100'))
  const late = [push('w3', hooked, { ttlS: 1 }), acked('w3', 1_002)]
  const told = violationsOf(...late, received('w3', hooked, 1_002, { atMs: 60_000 }))
  assert.deepEqual(told, ['w3 came after its ttl'])
})

test('a line that the server should never log breaks a run', () => {
  assert.deepEqual(violationsOf({ kind: 'broken', what: 'SIGBUS', atMs: 0 }), ['SIGBUS'])
})

test('an unfinished run does not show what is lost, but what was seen still counts', () => {
  const entries = [...without(received('w2', hooked, 1_001)), acked('w1', 1_005)]
  assert.deepEqual(checkLedgers(entries, { isFinished: false }).violations, [
    'w1 has two ids: 1000 and 1005',
  ])
})
