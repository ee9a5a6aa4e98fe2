/**
 * The load of an upgrade: clients that push to bots, poll them and receive their webhooks (load.ts) while versions change,
 * and the row of the report that says what became of it.
 */
import assert from 'node:assert/strict'
import { botsOfAllShards } from '../support/server/database.ts'
import type { EndingTest, Server } from '../support/server/server.ts'
import { Luck } from '../support/simulation/luck.ts'
import type { Balancer } from './balancer.ts'
import { BotLedger } from './bot-ledger.ts'
import { startHookSink } from './hook-sink.ts'
import { Load } from './load.ts'

export interface UpgradeOutcome {
  readonly way: string
  readonly stages: readonly string[]
  readonly accepted: number
  /** Pushes that a server refused. */
  readonly refused: number
  /** Pushes without a key whose connection ended with its server. */
  readonly unknown: number
  readonly received: number
  /** What was lost, doubled, out of order, or answered as no client should see it. */
  readonly violations: readonly string[]
  /** Why pushes were refused, or are unknown. */
  readonly reasons: readonly string[]
  /** Requests that took longer than the clients wait: servers, database and clients share one machine. */
  readonly late: readonly string[]
}

/** Registers bots of all shards, half with webhooks, and starts the clients. */
export async function startUpgradeLoad(
  t: EndingTest,
  server: Server,
  balancer: Balancer,
): Promise<{ readonly load: Load; readonly hooked: number }> {
  const polling = await botsOfAllShards(server)
  const hooked = await botsOfAllShards(server)
  const ledgers = [...polling, ...hooked].map(({ botId }) => new BotLedger(botId))
  const load = new Load({ balancer, luck: new Luck(2), polling }, ledgers)
  t.after(() => load.stop())
  const sink = await startHookSink(t, {
    onDelivery: (botId, text) => load.receiveText(botId, text),
    onOverlap: (botId) => load.noteWrong(`deliveries to bot ${botId} overlapped`),
  })
  for (const { botId, token } of hooked) {
    const { body, text } = await server.call(token, 'setWebhook', { url: sink.url(botId) })
    assert.equal(body.ok, true, text)
  }
  return { load, hooked: hooked.length }
}

/**
 * Returns what became of the load.
 *
 * @param way - the upgrade, as the report names it
 */
export function outcomeOf(
  way: string,
  stages: readonly string[],
  { ledgers, wrong, reasons }: Load,
): UpgradeOutcome {
  const sum = (count: (ledger: BotLedger) => number): number =>
    ledgers.reduce((total, each) => total + count(each), 0)
  const violations = ledgers.flatMap(({ violations: all }) =>
    all.map(({ rule, text }) => `${rule}: ${text}`),
  )
  const late: string[] = []
  for (const [text, count] of wrong) {
    const lines = text.includes('no response in time') ? late : violations
    lines.push(`${count} times, ${text}`)
  }
  return {
    way,
    stages,
    accepted: sum(({ counts }) => counts.accepted),
    refused: sum(({ counts }) => counts.refused),
    unknown: sum(({ counts }) => counts.unknown),
    received: sum(({ counts }) => counts.received),
    violations,
    reasons: [...reasons].map(([text, count]) => `${count} times, ${text}`),
    late,
  }
}
