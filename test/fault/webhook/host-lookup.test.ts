/** Tests look-ups with a real DNS server that is silent, fails, or does not know the name. */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { systemClock } from '../../../src/kit/clock.ts'
import { createHostLookup, type HostLookup } from '../../../src/delivery/endpoint/host-lookup.ts'
import { type DnsServer, startDns } from '../../support/network/dns-server.ts'

interface SetUp {
  readonly dns: DnsServer
  readonly lookup: HostLookup
}

async function setUp(
  t: TestContext,
  { hosts = '', local }: { readonly hosts?: string; readonly local?: HostLookup } = {},
): Promise<SetUp> {
  const dns = await startDns(t)
  const lookup = createHostLookup(systemClock, async () => hosts, local, [`127.0.0.1:${dns.port}`])
  return { dns, lookup }
}

test('names whose servers do not respond delay no other name', async (t) => {
  const { dns, lookup } = await setUp(t)
  dns.names.set('good.example', ['93.184.216.34', '2606:2800::1'])
  let ended = 0
  const silent = Array.from({ length: 300 }, (_value, index) => {
    dns.silent.add(`silent${index}.example`)
    return lookup(`silent${index}.example`).finally(() => ended++)
  })
  assert.deepEqual(await lookup('good.example'), ['93.184.216.34', '2606:2800::1'])
  assert.equal(ended, 0)
  const results = await Promise.allSettled(silent)
  for (const result of results) {
    assert.equal(result.status === 'rejected' && result.reason.code, 'EAI_AGAIN')
  }
})

test('a slow recursive server is waited for, however fast it responded before', async (t) => {
  const { dns, lookup } = await setUp(t)
  for (let index = 0; index < 5; index++) {
    dns.names.set(`fast${index}.example`, ['93.184.216.35'])
    await lookup(`fast${index}.example`)
  }
  dns.names.set('slow.example', ['93.184.216.34'])
  dns.silent.add('slow.example')
  // The server is queried at 0, 1 and 3 s.
  setTimeout(() => dns.silent.delete('slow.example'), 2_500)
  assert.deepEqual(await lookup('slow.example'), ['93.184.216.34'])
})

test('an address family that gets no response does not hold back the addresses of the other', async (t) => {
  const { dns, lookup } = await setUp(t)
  dns.names.set('half.example', ['93.184.216.34'])
  dns.silent.add('AAAA half.example')
  assert.deepEqual(await lookup('half.example'), ['93.184.216.34'])
})

test('one address family is enough, and a name with neither is not found', async (t) => {
  const { dns, lookup } = await setUp(t)
  dns.names.set('six.example', ['2606:2800::1'])
  dns.names.set('none.example', [])
  assert.deepEqual(await lookup('six.example'), ['2606:2800::1'])
  await assert.rejects(lookup('none.example'), { code: 'ENOTFOUND' })
  await assert.rejects(lookup('unknown.example'), { code: 'ENOTFOUND' })
})

test('a server failure does not mean that there is no such name', async (t) => {
  const { dns, lookup } = await setUp(t, { local: async () => ['10.0.0.1'] })
  dns.failing.add('failing.example')
  await assert.rejects(lookup('failing.example'), { code: 'EAI_AGAIN' })
})

test('the hosts file takes precedence over the name servers', async (t) => {
  const { dns, lookup } = await setUp(t, { hosts: '10.0.0.7 bot.example' })
  dns.names.set('bot.example', ['93.184.216.34'])
  assert.deepEqual(await lookup('bot.example'), ['10.0.0.7'])
  assert.equal(dns.questions('bot.example'), 0)
})

test('the system is asked for names that no server knows only if local names count', async (t) => {
  const asked: string[] = []
  const local: HostLookup = async (host) => {
    asked.push(host)
    return ['10.0.0.9']
  }
  const { dns, lookup } = await setUp(t, { local })
  dns.names.set('bot.example', ['93.184.216.34'])
  assert.deepEqual(await lookup('printer'), ['10.0.0.9'])
  await lookup('bot.example')
  assert.deepEqual(asked, ['printer'])
})
