/**
 * The load of an upgrade: clients that push to bots, poll them and receive their webhooks (load.ts) while versions change,
 * and what became of it.
 */
import assert from 'node:assert/strict'
import { botsOfAllShards } from '../support/server/database.ts'
import type { EndingTest, Server } from '../support/server/server.ts'
import { Luck } from '../support/simulation/luck.ts'
import { Seat } from './balancer.ts'
import { BotLedger } from './bot-ledger.ts'
import { startHookSink } from './hook-sink.ts'
import { Load } from './load.ts'
import { type UpgradeStep, UpgradeTally } from './upgrade-tally.ts'

/** Longer than the 4 s for which the server makes a request wait: how long it was is in the report. */
const requestMsMax = 15_000

export interface UpgradeOutcome {
  readonly way: string
  readonly steps: readonly UpgradeStep[]
  readonly accepted: number
  /** Pushes of which no client knows whether they are stored. */
  readonly unknown: number
  readonly received: number
  readonly receivedAgain: number
  /** What was lost, doubled, out of order, or answered as no client should see it. */
  readonly violations: readonly string[]
}

/** The clients of one server, or of one load balancer. */
export class UpgradeLoad {
  /** How many of its bots have a webhook. */
  readonly hooked: number
  readonly tally = new UpgradeTally()
  readonly clients: Load

  /**
   * Registers bots of all shards, half with webhooks, and starts the clients.
   *
   * @param entrance - what the clients call; a restart keeps its addresses
   */
  static async start(t: EndingTest, entrance: Server, seed: number): Promise<UpgradeLoad> {
    const polling = await botsOfAllShards(entrance)
    const hooked = await botsOfAllShards(entrance)
    const load = new UpgradeLoad(t, entrance, { polling, hooked, seed })
    const sink = await startHookSink(t, {
      onDelivery: (botId, text) => load.clients.receiveText(botId, text),
      onOverlap: (botId) => load.clients.noteWrong(`deliveries to bot ${botId} overlapped`),
    })
    for (const { botId, token } of hooked) {
      const { body, text } = await entrance.call(token, 'setWebhook', { url: sink.url(botId) })
      assert.equal(body.ok, true, text)
    }
    return load
  }

  private constructor(t: EndingTest, entrance: Server, { polling, hooked, seed }: LoadParts) {
    this.hooked = hooked.length
    const seat = new Seat('server', entrance)
    const ledgers = [...polling, ...hooked].map(({ botId }) => new BotLedger(botId))
    this.clients = new Load(
      {
        balancer: { pick: () => seat },
        luck: new Luck(seed),
        polling,
        requestMsMax,
        onAttempt: (attempt) => this.tally.note(attempt),
      },
      ledgers,
    )
    t.after(async () => {
      await this.clients.stop()
      seat.leave()
    })
  }

  /** What happens from now on. `isDown`: nobody serves for a while. */
  begin(step: string, isDown = false): void {
    this.clients.event = step
    this.tally.begin(step, { isDown })
  }

  /**
   * Ends the clients and returns what became of their requests.
   *
   * @param way - the upgrade, as the report names it
   */
  async end(way: string): Promise<UpgradeOutcome> {
    await this.clients.end()
    const { ledgers, wrong } = this.clients
    const sum = (count: keyof BotLedger['counts']): number =>
      ledgers.reduce((total, { counts }) => total + counts[count], 0)
    return {
      way,
      steps: this.tally.steps,
      accepted: sum('accepted'),
      unknown: sum('unknown'),
      received: sum('received'),
      receivedAgain: sum('receivedAgain'),
      violations: [
        ...ledgers.flatMap(({ violations }) =>
          violations.map(({ rule, text }) => `${rule}: ${text}`),
        ),
        ...Array.from(wrong, ([text, count]) => `${count} times, ${text}`),
      ],
    }
  }
}

interface LoadParts {
  readonly polling: Awaited<ReturnType<typeof botsOfAllShards>>
  readonly hooked: LoadParts['polling']
  readonly seed: number
}

/** Whether the upgrade kept what it must: only while the lone server was down, requests may have failed. */
export function isClean({ steps, violations, receivedAgain }: UpgradeOutcome): boolean {
  const failed = steps.some((step) => !step.isDown && step.failed > 0)
  return !failed && violations.length === 0 && receivedAgain === 0
}
