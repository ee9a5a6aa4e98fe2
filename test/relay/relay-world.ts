/**
 * Bots that are relayed from a fake origin while what relays them is killed: half of them are read by getUpdates, half by a
 * webhook. Every round kills once, at a boundary of the way of an update:
 *
 *     the response is ready --> it was sent --> a sync begins --> it has ended --> the confirm arrives --> it is done
 *
 * and then waits until everything that the origin has made has been received.
 */
import { PollingBot } from '../support/bots/polling-bot.ts'
import { until } from '../support/kit/until.ts'
import { drivenText, type OriginGate } from '../support/origin/origin-calls.ts'
import { Origin } from '../support/origin/origin.ts'
import { relayedBot, relayFlags } from '../support/origin/relay-server.ts'
import { botOf } from '../support/server/bot-of.ts'
import { wait } from '../support/server/database.ts'
import type { EndingTest, RegisteredBot } from '../support/server/server.ts'
import type { Luck } from '../support/simulation/luck.ts'
import { startSink, type WebhookSink } from '../support/webhook/webhook-sink.ts'
import { NodesTarget } from './nodes-target.ts'
import { RelayLedger } from './relay-ledger.ts'
import type { RelayTarget } from './relay-target.ts'
import { ServerTarget } from './server-target.ts'

/** The moments of a kill, in the order of an update's way. */
export const boundaries = [
  'response ready',
  'response sent',
  'sync begins',
  'sync ended',
  'confirm arrived',
  'confirm done',
  'any time',
] as const
export type Boundary = (typeof boundaries)[number]

const gates: Partial<Record<Boundary, OriginGate>> = {
  'response ready': 'answer',
  'response sent': 'answered',
  'confirm arrived': 'confirm',
  'confirm done': 'confirmed',
}

export interface RelayWorldOptions {
  readonly kind: 'server' | 'nodes'
  readonly luck: Luck
}

export interface RelayTotals {
  readonly counts: RelayLedger['counts']
  /** How many updates the origin has made. */
  readonly made: number
  /** How often it refused a poll, because another one came. */
  readonly conflicts: number
}

interface Reader extends RegisteredBot {
  readonly ledger: RelayLedger
  /** Takes what has come since the last time. */
  readonly read: () => void
}

const chats = [1, 2, 3]
const bots = 4
const roundsMax = 5
const busyMsMax = 800
const busyPerSecond = 200
/** A worker that is killed again and again is started after a pause. */
const receivedMsMax = 90_000

export class RelayWorld {
  readonly origin: Origin
  readonly target: RelayTarget
  readonly violations: string[] = []
  readonly #luck: Luck
  readonly #readers: Reader[] = []

  private constructor(origin: Origin, target: RelayTarget, luck: Luck) {
    this.origin = origin
    this.target = target
    this.#luck = luck
  }

  static async start(t: EndingTest, { kind, luck }: RelayWorldOptions): Promise<RelayWorld> {
    const origin = await Origin.start(t)
    const flags = relayFlags(origin)
    const target =
      kind === 'server'
        ? await ServerTarget.start(t, { flags, luck })
        : await NodesTarget.start(t, { flags })
    const world = new RelayWorld(origin, target, luck)
    const sink = await startSink(t)
    for (let nth = 0; nth < bots; nth++) await world.#addBot(t, nth, sink)
    return world
  }

  /** Kills once, and resolves when everything was received. */
  async round(boundary: Boundary, victim: string): Promise<void> {
    const { botId } = this.#luck.pick(this.#readers)
    const servers = this.target.servers()
    const gate = gates[boundary]
    if (gate !== undefined) await this.#killAtGate(gate, victim, botId)
    else if (boundary === 'any time') await this.#killAnyTime(victim, botId)
    else await this.#killAtSync(boundary === 'sync begins' ? 'begins' : 'ended', victim, botId)
    await this.target.restore()
    await until(() => this.#hasAll(), receivedMsMax)
    this.#findTokens(servers.map((server) => server.output()))
  }

  /** Returns what was received, and all violations. */
  async end(): Promise<RelayTotals> {
    const counts = { received: 0, receivedAgain: 0 }
    let made = 0
    for (const { botId, ledger } of this.#readers) {
      const driven = await this.origin.control.driven(botId)
      for (const count of Object.values(driven)) made += count
      ledger.settle(driven)
      this.violations.push(...ledger.violations)
      counts.received += ledger.counts.received
      counts.receivedAgain += ledger.counts.receivedAgain
    }
    const calls = await this.origin.control.calls()
    const others = calls.filter(({ method }) => method !== 'getUpdates')
    for (const { method } of others) this.violations.push(`the relay has called ${method}`)
    return { counts, made, conflicts: calls.filter(({ status }) => status === 409).length }
  }

  #findTokens(outputs: readonly string[]): void {
    for (const { botId, token } of this.#readers) {
      const secret = token.slice(token.indexOf(':') + 1)
      if (outputs.some((output) => output.includes(secret))) {
        this.violations.push(`the token of bot ${botId} is in a log`)
      }
    }
  }

  async #addBot(t: EndingTest, nth: number, sink: WebhookSink): Promise<void> {
    const server = this.target.server()
    const { botId, token } = await relayedBot(this.origin, server, botOf(nth % 2, 100 + nth))
    const ledger = new RelayLedger(botId)
    let from = 0
    if (nth < bots / 2) {
      const bot = new PollingBot({ token, server: () => this.target.server() })
      t.after(() => bot.stop())
      const read = (): void => {
        for (const { update } of bot.received.slice(from)) receive(ledger, update)
        from = bot.received.length
      }
      this.#readers.push({ botId, token, ledger, read })
      return
    }
    const path = `/${botId}`
    const set = await server.call(token, 'setWebhook', { url: sink.url(path) })
    if (set.status !== 200) throw new Error(set.text)
    const read = (): void => {
      for (const delivery of sink.deliveries.slice(from)) {
        if (delivery.path === path) receive(ledger, delivery.update)
      }
      from = sink.deliveries.length
    }
    this.#readers.push({ botId, token, ledger, read })
  }

  async #hasAll(): Promise<boolean> {
    for (const { botId, ledger, read } of this.#readers) {
      read()
      if (!ledger.hasAll(await this.origin.control.driven(botId))) return false
      // The last confirm is on its way.
      if ((await this.origin.control.pending(botId)) > 0) return false
      if (!(await this.origin.control.isPolled(botId))) return false
    }
    return true
  }

  async #killAtGate(gate: OriginGate, victim: string, botId: number): Promise<void> {
    const { control } = this.origin
    const reached = control.reach(botId, gate)
    await control.drive({ botId, chats, count: this.#luck.int(1, roundsMax) })
    await reached
    if (gate === 'answered') await wait(this.#luck.int(0, 5))
    await this.target.kill(victim, botId)
    // The origin may still do what the dead process has asked for.
    await control.release(botId, this.#luck.chance(0.5) ? 'go' : 'drop')
  }

  async #killAtSync(edge: 'begins' | 'ended', victim: string, botId: number): Promise<void> {
    const { control } = this.origin
    const ready = control.reach(botId, 'answer')
    const [chat = 0] = chats
    const text = drivenText(chat, (await control.driven(botId))[chat] ?? 0)
    await control.drive({ botId, chats, count: this.#luck.int(1, roundsMax) })
    await ready
    const held = this.target.holdSync(edge, `"${text}"`)
    await control.release(botId, 'go')
    await held
    if ((await control.pending(botId)) === 0) {
      this.violations.push(`bot ${botId}: ${text} was confirmed before its sync was known`)
    }
    // What is held stays so; its successor is not.
    this.target.letPass()
    await this.target.kill(victim, botId)
  }

  async #killAnyTime(victim: string, botId: number): Promise<void> {
    const count = busyPerSecond / chats.length
    const driven = this.#readers.map((reader) =>
      this.origin.control.drive({ botId: reader.botId, chats, count, perSecond: busyPerSecond }),
    )
    await wait(this.#luck.int(0, busyMsMax))
    await this.target.kill(victim, botId)
    await Promise.all(driven)
  }
}

function receive(
  ledger: RelayLedger,
  update: { readonly update_id: number; readonly message?: Readonly<Record<string, unknown>> },
): void {
  ledger.receive(update.update_id, String(update.message?.['text']))
}
