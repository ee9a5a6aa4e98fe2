/** Tests the addresses of a webhook's host with a real DNS server and a fake clock. */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { systemClock } from '../../../src/kit/clock.ts'
import { compileBlocklist } from '../../../src/http/blocklist.ts'
import { createHostLookup } from '../../../src/delivery/endpoint/host-lookup.ts'
import { HostAddresses } from '../../../src/delivery/endpoint/resolve.ts'
import checkAddresses from '../../../workers/check-address.ts'
import { type DnsServer, startDns } from '../../support/network/dns-server.ts'
import { FakeClock } from '../../support/kit/fake-clock.ts'
import { until } from '../../support/kit/until.ts'

const name = 'bot.example'
const minuteMs = 60_000
const ranges = compileBlocklist({ local: false, block: ['8.8.4.0/24'], allow: [] })

interface SetUp {
  readonly dns: DnsServer
  readonly clock: FakeClock
  readonly addresses: HostAddresses
  /** Advances the time and waits until a look-up that becomes due has ended. */
  readonly passMinutes: (minutes: number) => Promise<void>
}

async function setUp(t: TestContext, found: readonly string[]): Promise<SetUp> {
  const dns = await startDns(t)
  dns.names.set(name, found)
  const lookup = createHostLookup(systemClock, async () => '', undefined, [`127.0.0.1:${dns.port}`])
  const clock = new FakeClock()
  let open = 0
  const addresses = new HostAddresses({
    target: { host: name, hostIsAddress: false },
    ports: {
      lookup: (host) => {
        open++
        return lookup(host).finally(() => open--)
      },
      judge: async (list) => checkAddresses({ ranges, addresses: list }),
    },
    clock,
    random: () => 0.5,
    onChange: () => undefined,
  })
  return {
    dns,
    clock,
    addresses,
    async passMinutes(minutes) {
      await clock.advance(minutes * minuteMs)
      addresses.refreshIfDue(clock.monotonicMs())
      await until(() => open === 0)
      await addresses.pick().catch(() => undefined)
    },
  }
}

test('a name is looked up once in half an hour, however often a connection is opened', async (t) => {
  const { dns, clock, addresses, passMinutes } = await setUp(t, ['93.184.216.34'])
  for (let minute = 0; minute < 31; minute++) {
    assert.equal(await addresses.pick(), '93.184.216.34')
    addresses.refreshIfDue(clock.monotonicMs())
    await clock.advance(minuteMs)
  }
  assert.equal(dns.questions(name), 1)
  await passMinutes(1)
  assert.equal(dns.questions(name), 2)
  await passMinutes(31)
  assert.equal(dns.questions(name), 2)
  await passMinutes(1)
  assert.equal(dns.questions(name), 3)
})

test('many connections that are opened at once share one look-up', async (t) => {
  const { dns, addresses } = await setUp(t, ['93.184.216.34'])
  await Promise.all(Array.from({ length: 40 }, () => addresses.pick()))
  assert.equal(dns.questions(name), 1)
})

test('a name that changes to reserved addresses keeps none of them', async (t) => {
  const { dns, addresses, passMinutes } = await setUp(t, ['93.184.216.34', '2606:2800:220:1::34'])
  assert.equal(await addresses.pick(), '93.184.216.34')
  dns.names.set(name, ['127.0.0.1', '::1', '8.8.4.4', '64:ff9b::a00:1', '93.184.216.35'])
  await passMinutes(32)
  assert.deepEqual(
    ['93.184.216.34', '127.0.0.1', '::1', '8.8.4.4', '93.184.216.35'].map((one) =>
      addresses.has(one),
    ),
    [false, false, false, false, true],
  )
  dns.names.set(name, ['10.0.0.1'])
  await passMinutes(34)
  await assert.rejects(addresses.pick(), { message: 'IP address 10.0.0.1 is reserved' })
  dns.names.set(name, ['93.184.216.34'])
  assert.equal(await addresses.pick(), '93.184.216.34')
})

test('a name that is gone keeps its addresses while the look-up fails', async (t) => {
  const { dns, addresses, passMinutes } = await setUp(t, ['93.184.216.34'])
  await addresses.pick()
  dns.names.delete(name)
  await passMinutes(32)
  assert.equal(await addresses.pick(), '93.184.216.34')
  dns.names.set(name, ['93.184.216.35'])
  await passMinutes(1)
  assert.equal(await addresses.pick(), '93.184.216.35')
})
