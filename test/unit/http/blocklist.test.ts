import assert from 'node:assert/strict'
import { BlockList } from 'node:net'
import { test } from 'node:test'
import { compileBlocklist, isBlocked } from '../../../src/http/blocklist.ts'
import checkAddresses from '../../../workers/check-address.ts'

const publicList = compileBlocklist({ local: false, block: [], allow: [] })

const reservedIpv4 = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/3',
]

/** The first and last address of an IPv4 range and the addresses before and after it, as numbers. */
function edgesOf(range: string): { inside: readonly number[]; outside: readonly number[] } {
  const [net = '', prefix] = range.split('/')
  const first = net.split('.').reduce((value, byte) => value * 256 + Number(byte), 0)
  const last = first + 2 ** (32 - Number(prefix)) - 1
  return {
    inside: [first, last],
    outside: [first - 1, last + 1].filter((value) => value >= 0 && value < 2 ** 32),
  }
}

function dotted(value: number): string {
  return [24, 16, 8, 0].map((shift) => Math.floor(value / 2 ** shift) % 256).join('.')
}

/** Returns every way to write an IPv4 address within an IPv6 address. */
function embedded(value: number): readonly string[] {
  const high = Math.floor(value / 65_536).toString(16)
  const low = (value % 65_536).toString(16)
  const padded = value.toString(16).padStart(8, '0')
  return [
    `::ffff:${dotted(value)}`,
    `::FFFF:${high}:${low}`,
    `0:0:0:0:0:ffff:${padded.slice(0, 4)}:${padded.slice(4)}`,
    `0000:0000:0000:0000:0000:ffff:${dotted(value)}`,
    `64:ff9b::${dotted(value)}`,
    `64:FF9B::${high}:${low}`,
    `0064:ff9b:0:0:0:0:${high}:${low}`,
    `2002:${high}:${low}::`,
    `2002:${high}:${low}:ffff:ffff:ffff:ffff:ffff`,
  ]
}

test('every reserved IPv4 range is blocked from its first to its last address, its neighbors are not, in any notation', () => {
  for (const range of reservedIpv4) {
    const { inside, outside } = edgesOf(range)
    for (const [values, isReserved] of [
      [inside, true],
      [outside, false],
    ] as const) {
      for (const value of values) {
        for (const address of [dotted(value), ...embedded(value)]) {
          assert.equal(isBlocked(publicList, address), isReserved, `${address} by ${range}`)
        }
      }
    }
  }
})

test('of IPv6 only 2000::/3 is allowed, except its reserved ranges', () => {
  const ones = 'ffff:ffff:ffff:ffff:ffff:ffff'
  const blocked = [
    '::',
    '::1',
    '::10.0.0.1',
    '::8.8.8.8',
    '::fffe:ffff:ffff',
    '::1:0:0:0',
    '64:ff9a:ffff:ffff:ffff:ffff:ffff:ffff',
    '64:ff9b::1:0:0',
    '64:ff9b:1::1',
    '64:ff9b:1::8.8.8.8',
    '100::1',
    `1fff:ffff:${ones}`,
    '2001::',
    '2001::1',
    '2001:2::1',
    '2001:10::1',
    `2001:1ff:${ones}`,
    '2001:db8::',
    `2001:db8:${ones}`,
    '3fff::',
    `3fff:fff:${ones}`,
    '4000::',
    '5f00::1',
    'fc00::',
    `fdff:ffff:${ones}`,
    'fe80::1',
    'fe80::1%eth0',
    'fec0::1',
    'ff02::1',
    `ffff:ffff:${ones}`,
  ]
  const allowed = [
    '2000::',
    '2000:0000:0000:0000:0000:0000:0000:0000',
    `2000:ffff:${ones}`,
    '2001:200::',
    `2001:db7:${ones}`,
    '2001:db9::',
    `2001:ffff:${ones}`,
    '2003::',
    '2606:4700::1111',
    '2A00:1450:4001:81B::200E',
    `3ffe:ffff:${ones}`,
    '3fff:1000::',
    `3fff:ffff:${ones}`,
  ]
  for (const address of blocked) assert.equal(isBlocked(publicList, address), true, address)
  for (const address of allowed) assert.equal(isBlocked(publicList, address), false, address)
})

test('text that no resolver writes as an address is blocked', () => {
  for (const text of [
    '',
    'not an address',
    '127.1',
    '2130706433',
    '0x7f000001',
    '8.8.8',
    '08.8.8.8',
    '010.0.0.1',
    '0x8.8.8.8',
    '8.8.8.8 ',
    '8.8.8.8.',
    '8.8.8.8/32',
    '8.8.8.256',
    '[2606:4700::1]',
    '2606:4700::1/64',
    '2606:4700::1%eth0',
    '2606:4700',
    ':::1',
    '２.2.2.2',
  ]) {
    assert.equal(isBlocked(publicList, text), true, JSON.stringify(text))
  }
})

test('--block-cidr adds addresses, and --allow-cidr overrides everything', () => {
  const ranges = compileBlocklist({
    local: false,
    block: ['8.8.8.0/24', '2606:4700::/32', '2002::/16'],
    allow: [
      '10.1.0.0/16',
      '8.8.8.8',
      'fd00::/8',
      '2606:4700::1',
      '::ffff:192.168.0.0/112',
      '2002:a00:1::/48',
    ],
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
    '2002:a00:1::1',
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

test('an error names a range that cannot be read', () => {
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

/** Returns a generator of numbers below `bound`, drawn from a seed. */
function seeded(seed: number): (bound: number) => number {
  let state = seed
  return (bound) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0
    return Math.floor((state / 2 ** 32) * bound)
  }
}

test('random IPv4 addresses get the same verdict as from another implementation', () => {
  const other = new BlockList()
  for (const range of reservedIpv4) {
    const [net = '', prefix] = range.split('/')
    other.addSubnet(net, Number(prefix))
  }
  const random = seeded(12_345)
  for (let round = 0; round < 5_000; round++) {
    const address = dotted(random(2 ** 32))
    assert.equal(isBlocked(publicList, address), other.check(address), address)
  }
})

interface Piece {
  readonly from: number
  readonly size: number
}

function written(prefix: string, value: number): string {
  return prefix + (prefix.includes(':') ? value.toString(16) : String(value))
}

function has(list: readonly Piece[], value: number): boolean {
  return list.some(({ from, size }) => value >= from && value < from + size)
}

test('any mixture of --block-cidr and --allow-cidr gets the same verdict as from a search of the lists', () => {
  for (let seed = 1; seed <= 300; seed++) {
    const random = seeded(seed)
    const draw = (): readonly Piece[] =>
      Array.from({ length: random(12) }, () => {
        const size = 2 ** random(6)
        return { from: random(256 / size) * size, size }
      })
    for (const [prefix, bits] of [
      ['11.0.0.', 32],
      ['2606::', 128],
    ] as const) {
      const cidr = ({ from, size }: Piece): string =>
        `${written(prefix, from)}/${bits - Math.log2(size)}`
      const [block, allow] = [draw(), draw()]
      const lists = { block: block.map(cidr), allow: allow.map(cidr) }
      const ranges = compileBlocklist({ local: false, ...lists })
      for (let value = 0; value < 256; value++) {
        const expected = has(block, value) && !has(allow, value)
        assert.equal(isBlocked(ranges, written(prefix, value)), expected, `seed ${seed}: ${value}`)
      }
    }
  }
})
