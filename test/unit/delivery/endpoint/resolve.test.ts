import assert from 'node:assert/strict'
import { test } from 'node:test'
import { webhookAddressesMax } from '../../../../src/delivery/limits.ts'
import {
  type KnownAddresses,
  noAddresses,
} from '../../../../src/delivery/endpoint/known-addresses.ts'
import {
  HostAddresses,
  type HostAddressesOptions,
} from '../../../../src/delivery/endpoint/resolve.ts'
import { FakeClock, settle } from '../../../support/kit/fake-clock.ts'

function setUp(answers: (readonly string[] | Error)[], blocked: readonly string[] = []) {
  const clock = new FakeClock()
  const state = { lookups: 0, changes: 0 }
  const options: HostAddressesOptions = {
    target: { host: 'bot.example', hostIsAddress: false },
    ports: {
      lookup: async () => {
        const answer = answers[Math.min(state.lookups++, answers.length - 1)]!
        if (answer instanceof Error) throw answer
        return answer
      },
      judge: async (list) => list.map((one) => !blocked.includes(one)),
    },
    clock,
    random: () => 0.5,
    onChange: () => void state.changes++,
  }
  const known = (addresses: readonly string[]): KnownAddresses => {
    return { ...noAddresses(), addresses, foundMs: clock.monotonicMs() }
  }
  return { clock, state, addresses: new HostAddresses(options), options, known }
}

test('known addresses are used without a look-up, in order, one after the other, for 30 minutes', async () => {
  const { clock, state, options, known } = setUp([['192.0.2.9', '192.0.2.3', '192.0.2.2']])
  const kept = known(['192.0.2.1', '192.0.2.2', '192.0.2.3'])
  const first = new HostAddresses({ ...options, known: kept })
  assert.equal(await first.pick(), '192.0.2.1')
  first.failed('192.0.2.1')
  first.close()
  await clock.advance(29 * 60_000)
  const second = new HostAddresses({ ...options, known: kept })
  second.refreshIfDue(clock.monotonicMs())
  assert.equal(
    await second.pick(),
    '192.0.2.2',
    'the one that failed last is not tried first again',
  )
  assert.equal(state.lookups, 0)
  await clock.advance(5 * 60_000)
  const third = new HostAddresses({ ...options, known: kept })
  assert.equal(await third.pick(), '192.0.2.2', 'looked up again, it is still there')
  assert.equal(state.lookups, 1)
  third.failed('192.0.2.2')
  assert.equal(await third.pick(), '192.0.2.9')
  const fourth = new HostAddresses({ ...options, known: kept })
  assert.equal(await fourth.pick(), '192.0.2.9')
  assert.equal(state.lookups, 1)
})

test('after a restart the verified address comes first, if the name still has it', async () => {
  const { options } = setUp([['192.0.2.1', '192.0.2.2']])
  assert.equal(await new HostAddresses({ ...options, preferred: '192.0.2.2' }).pick(), '192.0.2.2')
  assert.equal(await new HostAddresses({ ...options, preferred: '192.0.2.7' }).pick(), '192.0.2.1')
})

test('addresses are kept for 30 minutes and up to a tenth more, then looked up in the background', async () => {
  const { clock, state, addresses } = setUp([['192.0.2.1'], ['192.0.2.2']])
  assert.equal(await addresses.pick(), '192.0.2.1')
  await clock.advance(31.4 * 60_000)
  addresses.refreshIfDue(clock.monotonicMs())
  assert.equal(state.lookups, 1)
  await clock.advance(0.2 * 60_000)
  addresses.refreshIfDue(clock.monotonicMs())
  assert.equal(await addresses.pick(), '192.0.2.1', 'the old one stays in use meanwhile')
  await settle()
  assert.equal(await addresses.pick(), '192.0.2.2')
  assert.equal(addresses.has('192.0.2.1'), false)
  assert.equal(state.changes, 2)
})

test('a failed background look-up keeps the old addresses and is tried again a minute later', async () => {
  const { clock, state, addresses } = setUp([['192.0.2.1'], new Error('no'), ['192.0.2.2']])
  await addresses.pick()
  await clock.advance(34 * 60_000)
  addresses.refreshIfDue(clock.monotonicMs())
  await settle()
  assert.equal(await addresses.pick(), '192.0.2.1')
  addresses.refreshIfDue(clock.monotonicMs())
  assert.equal(state.lookups, 2)
  await clock.advance(60_000)
  addresses.refreshIfDue(clock.monotonicMs())
  await settle()
  assert.equal(await addresses.pick(), '192.0.2.2')
})

test('of very many addresses the first allowed ones are tried in turn', async () => {
  const found = Array.from({ length: webhookAddressesMax + 9 }, (_, nth) => `192.0.2.${nth}`)
  const { addresses } = setUp([found], found.slice(0, 5))
  const picked: string[] = []
  for (let nth = 0; nth <= webhookAddressesMax; nth++) {
    const address = await addresses.pick()
    picked.push(address)
    addresses.failed(address)
  }
  const tried = found.slice(5, 5 + webhookAddressesMax)
  assert.deepEqual(picked, [...tried, tried[0]])
})

test('blocked addresses are skipped, and a name with no others is refused with its address', async () => {
  const mixed = setUp([['10.0.0.1', '192.0.2.1']], ['10.0.0.1'])
  assert.equal(await mixed.addresses.pick(), '192.0.2.1')
  const bad = setUp([['10.0.0.1']], ['10.0.0.1'])
  await assert.rejects(bad.addresses.pick(), { message: 'IP address 10.0.0.1 is reserved' })
})

test('after a failed connection the next address is used', async () => {
  const { addresses } = setUp([['192.0.2.1', '192.0.2.2']])
  assert.equal(await addresses.pick(), '192.0.2.1')
  addresses.failed('192.0.2.1')
  addresses.failed('192.0.2.1')
  assert.equal(await addresses.pick(), '192.0.2.2')
  addresses.failed('192.0.2.2')
  assert.equal(await addresses.pick(), '192.0.2.1')
})

test('if no address can be connected to, the next connection waits for a new look-up, every 10 s at most', async () => {
  const { clock, state, addresses } = setUp([
    ['192.0.2.1', '192.0.2.2'],
    ['192.0.2.1', '192.0.2.2'],
    ['192.0.2.3'],
  ])
  const tryNext = async (): Promise<string> => {
    const address = await addresses.pick()
    addresses.failed(address)
    return address
  }
  assert.deepEqual([await tryNext(), await tryNext()], ['192.0.2.1', '192.0.2.2'])
  await clock.advance(9_999)
  assert.deepEqual([await tryNext(), state.lookups], ['192.0.2.1', 1])
  await clock.advance(1)
  assert.deepEqual([await tryNext(), state.lookups], ['192.0.2.2', 2])
  assert.deepEqual([await tryNext(), state.lookups], ['192.0.2.1', 2])
  await clock.advance(10_000)
  assert.deepEqual(await Promise.all([tryNext(), tryNext()]), ['192.0.2.3', '192.0.2.3'])
  assert.deepEqual([state.lookups, addresses.has('192.0.2.1')], [3, false])
})

test('an address that can be connected to ends the doubt, and one of several that fails raises none', async () => {
  const { clock, state, addresses } = setUp([['192.0.2.1', '192.0.2.2']])
  for (let nth = 0; nth < 3; nth++) {
    addresses.failed(await addresses.pick())
    addresses.connected()
    await clock.advance(10_000)
  }
  await addresses.pick()
  assert.equal(state.lookups, 1)
})

test('addresses of which none works stay in use while the name does not resolve', async () => {
  const { clock, state, addresses } = setUp([['192.0.2.1'], new Error('no')])
  addresses.failed(await addresses.pick())
  await clock.advance(10_000)
  assert.deepEqual([await addresses.pick(), state.lookups], ['192.0.2.1', 2])
})

test('a new address that the rules forbid is not used in place of one that fails', async () => {
  const { clock, addresses } = setUp([['192.0.2.1'], ['10.0.0.1']], ['10.0.0.1'])
  addresses.failed(await addresses.pick())
  await clock.advance(10_000)
  await assert.rejects(addresses.pick(), { message: 'IP address 10.0.0.1 is reserved' })
})

test('addresses that somebody doubts are looked up before the next connection, but not if they are new', async () => {
  const { clock, state, addresses } = setUp([['192.0.2.1'], ['192.0.2.2']])
  assert.equal(await addresses.pick(), '192.0.2.1')
  addresses.doubt()
  assert.equal(await addresses.pick(), '192.0.2.1')
  await clock.advance(10_000)
  assert.deepEqual([await addresses.pick(), await addresses.pick()], ['192.0.2.2', '192.0.2.2'])
  assert.equal(state.lookups, 2)
})

test('addresses that a setWebhook has verified since are reported as a change', async () => {
  const { clock, state, options, known } = setUp([])
  const kept = known(['192.0.2.1'])
  const addresses = new HostAddresses({ ...options, known: kept })
  addresses.refreshIfDue(clock.monotonicMs())
  assert.equal(state.changes, 0)
  kept.addresses = ['192.0.2.2']
  addresses.refreshIfDue(clock.monotonicMs())
  addresses.refreshIfDue(clock.monotonicMs())
  assert.equal(state.changes, 1)
})

test('a name without addresses gets an error with the words that frameworks look for', async () => {
  await assert.rejects(setUp([[]]).addresses.pick(), {
    message: 'Failed to resolve host: No address associated with hostname',
  })
})

test("a name that does not resolve gets Postbote's error, and is looked up again the next time", async () => {
  const error = Object.assign(new Error('x'), { code: 'ENOTFOUND' })
  const { addresses } = setUp([error, ['192.0.2.1']])
  await assert.rejects(addresses.pick(), {
    message: 'Failed to resolve host: Name or service not known',
  })
  assert.equal(await addresses.pick(), '192.0.2.1')
})

test('an address with a zone is no address, and reaches neither a judge, a socket nor a proxy', async () => {
  const zoned = ['fe80::1%eth0', '2001:db8::1%25x', '2606:4700::1%\r\nx']
  await assert.rejects(setUp([zoned]).addresses.pick(), { message: /No address associated/ })
  const { addresses } = setUp([[...zoned, '192.0.2.1']])
  assert.equal(await addresses.pick(), '192.0.2.1')
})
