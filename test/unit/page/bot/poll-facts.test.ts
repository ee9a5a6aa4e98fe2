import assert from 'node:assert/strict'
import { test } from 'node:test'
import { pollFacts } from '../../../../src/page/bot/poll-facts.ts'

const nowS = 1_800_000_000
const deliveries = {
  delivered: 0,
  rejected: 0,
  timed_out: 0,
  connection_failed: 0,
  tls_failed: 0,
  refused_for_good: 0,
  expired: 0,
}
const well = { waiting_poll: false, health: null, deliveries } as const
const polling = {
  last_poll: nowS - 4,
  fetched: 1_200,
  confirmed: 1_100,
  client: { user_agent: 'aiogram/3.1', address: '198.51.100.7' },
  client_before: { user_agent: null, address: '198.51.100.8' },
  conflicts: 0,
  last_conflict: null,
} as const

function textsOf(facts: Parameters<typeof pollFacts>[0]): Readonly<Record<string, string>> {
  return Object.fromEntries(
    pollFacts(facts, nowS).map(({ name, text, isTrouble }) => [
      name,
      isTrouble === true ? `! ${text}` : text,
    ]),
  )
}

test('a bot that polls well shows when, by whom and how much', () => {
  assert.deepEqual(textsOf({ ...well, polling }), {
    'Last poll': '4 s ago',
    Client: 'aiogram/3.1, from 198.51.100.7',
    Conflicts: 'none',
    'Fetched, last hour': '1,200',
    'Confirmed, last hour': '1,100',
    Expired: '0',
  })
  assert.equal(textsOf({ ...well, waiting_poll: true, polling })['Last poll'], 'waits now')
})

test('two programs that poll are both named, while their conflicts are news', () => {
  const fought = textsOf({
    ...well,
    polling: { ...polling, conflicts: 12, last_conflict: nowS - 180 },
  })
  assert.equal(fought['Conflicts'], '! 12 (409 or a takeover), the last 3 min ago')
  assert.equal(fought['Other client'], '! no User-Agent, from 198.51.100.8')
  const before = textsOf({
    ...well,
    polling: { ...polling, conflicts: 12, last_conflict: nowS - 3_600 },
  })
  assert.equal(before['Conflicts'], '12 (409 or a takeover), the last 60 min ago')
  assert.equal(before['Other client'], undefined)
})

test('a bot that nobody polls says since when, and what has expired', () => {
  const facts = textsOf({
    ...well,
    health: 'unpolled',
    deliveries: { ...deliveries, expired: 7 },
    polling: { ...polling, last_poll: null, client: null, client_before: null },
  })
  assert.equal(facts['Last poll'], '! none is known')
  assert.equal(facts['Client'], 'none is known')
  assert.equal(facts['Expired'], '! 7')
})

test('a worker of an earlier version says only whether a poll waits', () => {
  assert.deepEqual(textsOf({ ...well, polling: undefined }), { 'Last poll': '–' })
})
