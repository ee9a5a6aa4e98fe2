import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BotLedger } from './bot-ledger.ts'

function rulesOf(play: (ledger: BotLedger) => void): readonly string[] {
  const ledger = new BotLedger(1)
  play(ledger)
  ledger.settle()
  return ledger.violations.map(({ rule }) => rule)
}

test('what is accepted and received once, refused and never received, or unknown breaks no rule', () => {
  const rules = rulesOf((ledger) => {
    for (let nth = 0; nth < 4; nth++) ledger.begin()
    ledger.accept(0, 10)
    ledger.receive(10, 0)
    ledger.receive(12, 1)
    ledger.accept(1, 12)
    ledger.accept(1, 12)
    ledger.receive(10, 0)
    ledger.refuse(2)
    ledger.leaveUnknown(3)
    ledger.receive(13, 3)
  })
  assert.deepEqual(rules, [])
})

const broken: readonly (readonly [string, (ledger: BotLedger) => void])[] = [
  ['lost', (ledger) => ledger.accept(0, 10)],
  ['stored twice', (ledger) => [10, 11].forEach((id) => ledger.receive(id, 0))],
  [
    'stored twice',
    (ledger) => {
      ledger.accept(0, 10)
      ledger.accept(0, 11)
      ledger.receive(10, 0)
    },
  ],
  [
    'refused but stored',
    (ledger) => {
      ledger.refuse(0)
      ledger.receive(10, 0)
    },
  ],
  [
    'refused but stored',
    (ledger) => {
      ledger.receive(10, 0)
      ledger.refuse(0)
    },
  ],
  [
    'wrong id',
    (ledger) => {
      ledger.accept(0, 10)
      ledger.receive(11, 0)
    },
  ],
  [
    'order',
    (ledger) => {
      ledger.receive(11, 0)
      ledger.receive(10, 1)
    },
  ],
  ['order', (ledger) => ledger.expectRising(10, 10)],
]

for (const [nth, [rule, play]] of broken.entries()) {
  test(`the ledger of a bot finds what is ${rule}, case ${nth}`, () => {
    const rules = rulesOf((ledger) => {
      ledger.begin()
      ledger.begin()
      play(ledger)
    })
    assert.deepEqual(rules, [rule])
  })
}
