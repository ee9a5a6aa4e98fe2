import assert from 'node:assert/strict'
import { test } from 'node:test'
import { troubleCauses, type TroubledBots } from '../../../../src/page/bots/trouble-causes.ts'

type Listed = TroubledBots['bots'][number]

function bot(id: number, reason: string, host: string | null = 'hooks.example'): Listed {
  return {
    bot_id: id,
    first_name: 'Shop',
    username: `shop${id}_bot`,
    created_at: 0,
    mode: host === null ? 'polling' : 'webhook',
    pending: 1,
    oldest_age: 60,
    paused: false,
    health: 'failing',
    health_reason: reason,
    next_attempt: null,
    webhook_host: host,
  }
}

function said(...troubled: readonly TroubledBots[]): readonly string[] {
  return troubleCauses(troubled).map(({ lead, more }) => `${lead} | ${more}`)
}

test('bots with one cause and one host are one line, the cause with the most bots first', () => {
  const refused = 'Connection refused; 17 failures in 13 min'
  const bots = [
    bot(100, 'endpoint answers 502 Bad Gateway; 3 failures in 2 min; 4 chats wait'),
    bot(101, refused),
    bot(102, 'Connection refused; 3 failures in 2 s'),
    bot(103, refused, 'other.example'),
  ]
  assert.deepEqual(said({ state: 'failing', bots, isCut: false }), [
    'Connection refused | 2 bots',
    'Endpoint answers 502 Bad Gateway | 3 failures in 2 min, 4 chats wait',
    'Connection refused | 17 failures in 13 min',
  ])
})

test('the causes of the worst state come first', () => {
  const unpolled = [bot(100, 'nobody polls', null), bot(101, 'nobody polls', null)]
  const failing = [bot(102, 'Connection refused; 3 failures in 2 s')]
  assert.deepEqual(
    said(
      { state: 'unpolled', bots: unpolled, isCut: false },
      { state: 'failing', bots: failing, isCut: false },
    ),
    ['Connection refused | 3 failures in 2 s', 'Nobody polls | 2 bots'],
  )
})

test('bots that are late by different times have one cause, of which the worst is said', () => {
  const bots = [
    bot(100, 'updates are 42 min late, and get later; 9 updates wait'),
    bot(101, 'updates are 3 min late; 2 updates wait'),
  ]
  assert.deepEqual(said({ state: 'behind', bots, isCut: false }), [
    'Updates are 42 min late, and get later | the worst of 2 bots',
  ])
})

test('two statuses of one host are two causes', () => {
  const bots = [
    bot(100, 'endpoint answers 502 Bad Gateway; 3 failures in 2 min'),
    bot(101, 'endpoint answers 503 Service Unavailable; 3 failures in 2 min'),
  ]
  assert.equal(said({ state: 'failing', bots, isCut: false }).length, 2)
})

test('a cause of more bots than were read says so', () => {
  const bots = [bot(100, 'Connection refused'), bot(101, 'Connection refused')]
  assert.deepEqual(said({ state: 'failing', bots, isCut: true }), [
    'Connection refused | at least 2 bots',
  ])
})

function keyOf(...bots: readonly Listed[]): string | undefined {
  return troubleCauses([{ state: 'behind', bots, isCut: false }])[0]?.key
}

test('a line is the same while its bot or its bots have the cause', () => {
  const late = (id: number, minutes: number): Listed =>
    bot(id, `updates are ${minutes} min late, and get later`)
  assert.equal(keyOf(late(100, 3)), keyOf(bot(100, 'updates are 5 min late')))
  assert.equal(keyOf(late(100, 3), late(101, 2)), keyOf(late(102, 9), late(101, 4)))
})

test('a state without a sentence is its own cause', () => {
  const { health_reason: _reason, ...unsaid } = bot(100, '')
  assert.deepEqual(said({ state: 'failing', bots: [unsaid], isCut: false }), ['Failing | '])
})
