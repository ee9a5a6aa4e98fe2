import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TroubleEvents } from '../../../src/bots/trouble-events.ts'
import type { Health } from '../../../src/webhook/health.ts'

const minuteMs = 60_000

/** The events of a bot that is looked at every five seconds. */
class Watched {
  readonly events: string[] = []
  readonly troubles = new TroubleEvents(({ type, botId, reason }) => {
    const because = reason === undefined ? '' : `: ${reason}`
    this.events.push(`${this.#nowMs / minuteMs} ${type} ${botId}${because}`)
  })
  #nowMs = 0

  is(health: Health | undefined, minutes: number, hasWebhook = false): void {
    const endMs = this.#nowMs + minutes * minuteMs
    for (; this.#nowMs < endMs; this.#nowMs += 5_000) {
      this.troubles.note({
        botId: 100,
        hasWebhook,
        health,
        reason: () => 'why',
        nowMs: this.#nowMs,
        timeMs: 0,
      })
      this.troubles.sweep(this.#nowMs)
    }
  }
}

test('a degraded bot is reported at once, and recovers after five minutes without trouble', () => {
  const bot = new Watched()
  bot.is(undefined, 1)
  bot.is('degraded', 52)
  bot.is(undefined, 10)
  assert.deepEqual(bot.events, ['1 bot.degraded 100: why', '58 bot.recovered 100'])
  assert.equal(bot.troubles.isEmpty, true)
})

test('a bot that is degraded now and then is reported once', () => {
  const bot = new Watched()
  for (let round = 0; round < 100; round++) {
    bot.is('degraded', 1)
    bot.is(undefined, 4)
  }
  assert.deepEqual(bot.events, ['0 bot.degraded 100: why'])
})

test('a bot that nobody polls is reported after some minutes, and once an hour at most', () => {
  const bot = new Watched()
  for (let round = 0; round < 12; round++) {
    bot.is('unpolled', 6)
    bot.is(undefined, 4)
  }
  assert.deepEqual(bot.events, [
    '4 bot.unpolled 100: why',
    '6 bot.polled 100',
    '64 bot.unpolled 100: why',
    '66 bot.polled 100',
  ])
})

test('a deployment during which nobody polls for four minutes is no event', () => {
  const bot = new Watched()
  for (let round = 0; round < 9; round++) {
    bot.is('unpolled', 4)
    bot.is(undefined, 1)
  }
  assert.deepEqual(bot.events, [])
})

test('a webhook that is behind is reported, and one of which attempts fail is reported by its attempts', () => {
  const bot = new Watched()
  bot.is('behind', 1, true)
  bot.is('degraded', 9, true)
  bot.is('failing', 9, true)
  assert.deepEqual(bot.events, ['0 bot.degraded 100: why', '6 bot.recovered 100'])
})

test('a bot that is gone is forgotten', () => {
  const bot = new Watched()
  bot.is('degraded', 1)
  bot.troubles.sweep(12 * minuteMs)
  assert.equal(bot.troubles.isEmpty, true)
  bot.is('degraded', 1)
  bot.troubles.forget((botId) => botId === 100)
  assert.equal(bot.troubles.isEmpty, true)
})
