import assert from 'node:assert/strict'
import { BlockList } from 'node:net'
import { test } from 'node:test'
import { compileBlocklist, isBlocked } from '../../../src/webhook/blocklist.ts'
import checkAddresses from '../../../workers/check-address.ts'

const publicList = compileBlocklist({ local: false, block: [], allow: [] })

test('every reserved range is blocked from its first to its last address, and its neighbours are not', () => {
  const cases = [
    '0.0.0.0',
    '0.255.255.255',
    '!1.0.0.0',
    '!9.255.255.255',
    '10.0.0.0',
    '10.255.255.255',
    '!11.0.0.0',
    '!100.63.255.255',
    '100.64.0.0',
    '100.127.255.255',
    '!100.128.0.0',
    '127.0.0.1',
    '169.254.169.254',
    '!172.15.255.255',
    '172.16.0.0',
    '172.31.255.255',
    '!172.32.0.0',
    '192.0.0.1',
    '!192.0.1.1',
    '192.0.2.1',
    '192.88.99.1',
    '192.168.1.1',
    '198.18.0.0',
    '198.19.255.255',
    '!198.20.0.0',
    '198.51.100.9',
    '203.0.113.9',
    '!223.255.255.255',
    '224.0.0.0',
    '255.255.255.255',
    '!8.8.8.8',
    '::',
    '::1',
    'fe80::1',
    'fe80::1%eth0',
    'fc00::1',
    'ff02::1',
    '!2000::',
    '!2606:4700::1111',
    '2001::1',
    '2001:1ff::1',
    '!2001:200::1',
    '2001:db8::1',
    '3fff::1',
    '3fff:fff::1',
    '!3fff:1000::1',
    '!3ffe::1',
    '4000::',
    '::ffff:10.0.0.1',
    '!::ffff:8.8.8.8',
    '64:ff9b::a00:1',
    '!64:ff9b::808:808',
    '64:ff9b:1::1',
    '2002:a00:1::',
    '2002:7f00:1::1',
    '!2002:808:808::1',
    '::10.0.0.1',
    'not an address',
    '',
    '127.1',
    '010.0.0.1',
  ]
  for (const one of cases) {
    const allowed = one.startsWith('!')
    const address = allowed ? one.slice(1) : one
    assert.equal(isBlocked(publicList, address), !allowed, address)
  }
})

test('--block-cidr adds and --allow-cidr wins over everything', () => {
  const ranges = compileBlocklist({
    local: false,
    block: ['8.8.8.0/24', '2606:4700::/32', '2002::/16'],
    allow: ['10.1.0.0/16', '8.8.8.8', 'fd00::/8', '2606:4700::1', '::ffff:192.168.0.0/112'],
  })
  const blocked = [
    '8.8.8.7',
    '8.8.8.9',
    '10.0.255.255',
    '10.2.0.0',
    '2606:4700::2',
    'fc00::1',
    '2002:808:808::1',
    '192.0.0.1',
  ]
  const allowed = [
    '8.8.8.8',
    '10.1.2.3',
    '::ffff:10.1.2.3',
    'fd12::1',
    '2606:4700::1',
    '192.168.3.4',
  ]
  assert.deepEqual(
    checkAddresses({ ranges, addresses: blocked }),
    blocked.map(() => false),
  )
  assert.deepEqual(
    checkAddresses({ ranges, addresses: allowed }),
    allowed.map(() => true),
  )
})

test('with --local only --block-cidr blocks', () => {
  const ranges = compileBlocklist({ local: true, block: ['10.0.0.0/8'], allow: [] })
  assert.equal(isBlocked(ranges, '127.0.0.1'), false)
  assert.equal(isBlocked(ranges, '::1'), false)
  assert.equal(isBlocked(ranges, '10.1.1.1'), true)
})

test('a range that cannot be read is named', () => {
  for (const text of [
    '10.0.0.0/33',
    '10.0.0/8',
    'x/8',
    '::/129',
    '10.0.0.0/',
    '10.0.0.0/8/8',
    '1.2.3.4/-1',
  ]) {
    assert.throws(
      () => compileBlocklist({ local: false, block: [text], allow: [] }),
      { name: 'TypeError', message: /expected an address range/ },
      text,
    )
  }
})

test('random IPv4 addresses are judged as by another implementation', () => {
  const other = new BlockList()
  for (const [net, prefix] of [
    ['0.0.0.0', 8],
    ['10.0.0.0', 8],
    ['100.64.0.0', 10],
    ['127.0.0.0', 8],
    ['169.254.0.0', 16],
    ['172.16.0.0', 12],
    ['192.0.0.0', 24],
    ['192.0.2.0', 24],
    ['192.88.99.0', 24],
    ['192.168.0.0', 16],
    ['198.18.0.0', 15],
    ['198.51.100.0', 24],
    ['203.0.113.0', 24],
    ['224.0.0.0', 3],
  ] as const) {
    other.addSubnet(net, prefix)
  }
  let state = 12_345
  for (let round = 0; round < 5_000; round++) {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0
    const address = [state >>> 24, (state >>> 16) & 255, (state >>> 8) & 255, state & 255].join('.')
    assert.equal(isBlocked(publicList, address), other.check(address), address)
  }
})
