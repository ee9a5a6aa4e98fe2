import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TroubleEvents } from '../../../../src/features/fleet/trouble-events.ts'
import type { Health } from '../../../../src/kit/states.ts'

const minuteMs = 60_000

/** The events of a bot that is looked at every five seconds. */
class Watched {
  readonly events: string[] = []
  readonly troubles = new TroubleEvents(({ type, botId, reason }) => {
    const because = reason === undefined ? '' : `: ${reason}`
    this.events.push(`${this.#nowMs / minuteMs} ${type} ${botId}${because}`)
  })
  #nowMs = 0
  #polledMs = 0

  is(
    health: Health | undefined,
    minutes: number,
    how: 'polls' | 'webhook' | 'off' = 'polls',
  ): void {
    const endMs = this.#nowMs + minutes * minuteMs
    for (; this.#nowMs < endMs; this.#nowMs += 5_000) {
      if (health !== 'unpolled' && how === 'polls') this.#polledMs = this.#nowMs
      this.troubles.note({
        botId: 100,
        hasWebhook: how === 'webhook',
        health,
        polls: { isWaiting: false, lastBeforeMs: this.#nowMs - this.#polledMs },
        reason: () => 'why',
        nowMs: this.#nowMs,
        timeMs: 0,
      })
      this.troubles.sweep(this.#nowMs)
    }
  }
}

test('a degraded bot is reported at once, and recovers after ten minutes without trouble', () => {
  const bot = new Watched()
  bot.is(undefined, 1)
  bot.is('degraded', 52)
  bot.is(undefined, 15)
  assert.deepEqual(bot.events, ['1 bot.degraded 100: why', '63 bot.recovered 100'])
  assert.equal(bot.troubles.has(100), false)
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

test('a webhook that is behind and then fails has not recovered before it is well', () => {
  const bot = new Watched()
  bot.is('behind', 4, 'webhook')
  bot.is('degraded', 16, 'webhook')
  bot.is('failing', 20, 'webhook')
  assert.deepEqual(bot.events, ['3 bot.degraded 100: why'], 'attempts report their failures')
  bot.is('healthy', 20, 'webhook')
  assert.deepEqual(bot.events.slice(1), ['50 bot.recovered 100'])
})

test('a bot that is behind for less than three minutes is not reported, and a worse trouble of it at once', () => {
  const bot = new Watched()
  bot.is('behind', 2)
  bot.is(undefined, 1)
  bot.is('behind', 2)
  assert.deepEqual(bot.events, [])
  bot.is('degraded', 1)
  assert.deepEqual(bot.events, ['5 bot.degraded 100: why'])
})

test('a bot that confirms nothing and is away between its polls is reported once, and has not recovered', () => {
  const bot = new Watched()
  for (let round = 0; round < 10; round++) {
    bot.is('degraded', 1)
    bot.is('unpolled', 14)
  }
  const degraded = bot.events.filter((event) => /degraded|recovered/.test(event))
  assert.deepEqual(degraded, ['0 bot.degraded 100: why'])
})

test('what expires or is erased while nobody polls is not fetched', () => {
  const bot = new Watched()
  bot.is('unpolled', 6)
  bot.is(undefined, 60, 'off')
  bot.is('unpolled', 120)
  assert.deepEqual(bot.events, ['4 bot.unpolled 100: why'])
  bot.is(undefined, 1)
  assert.deepEqual(bot.events.slice(1), ['186 bot.polled 100'])
})

test('what another process has reported is not reported again, and its end is', () => {
  const bot = new Watched()
  bot.troubles.restore({ trouble: 'unpolled', botId: 100, atMs: -60_000 }, 0)
  bot.is('unpolled', 10, 'off')
  bot.is(undefined, 1)
  assert.deepEqual(bot.events, ['10 bot.polled 100'])
  assert.deepEqual(bot.troubles.takeReported(), [])
  assert.equal(bot.troubles.takeReported(), undefined)
  bot.is('degraded', 1)
  assert.equal(bot.troubles.takeReported()?.length, 1)
})

test('a bot that is gone is forgotten', () => {
  const bot = new Watched()
  bot.is('degraded', 1)
  bot.troubles.sweep(12 * minuteMs)
  assert.equal(bot.troubles.has(100), false)
  bot.is('degraded', 1)
  bot.troubles.forget((botId) => botId === 100)
  assert.equal(bot.troubles.has(100), false)
})
