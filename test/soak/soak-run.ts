/**
 * One soak run: a server on a simulated disk; a producer, polling bots and a webhook receiver in separate processes; a
 * nemesis; and at the end the checker. Everything is in one directory:
 *
 *     data/                      that of the server, on the simulated disk
 *     *.ledger                   what each process saw
 *     server.log, nemesis.log    what the server logged, and which faults occurred
 */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { appendFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { DiskKind } from '../fault/power/disk-journal.ts'
import { SimulatedDisk } from '../fault/power/simulated-disk.ts'
import { freePort } from '../support/kit/port.ts'
import { Luck } from '../support/simulation/luck.ts'
import { checkLedgers, type SoakVerdict } from './check-ledgers.ts'
import { type FaultKind, FaultPlan } from './fault-plan.ts'
import { Ledger, nowMs, readLedger } from './ledger.ts'
import { Nemesis } from './nemesis.ts'
import { SoakClient } from './soak-client.ts'
import { ServerLives } from './server-lives.ts'
import { pause, type SoakBot, type SoakTask } from './soak-process.ts'

export interface SoakOptions {
  readonly seed: number
  readonly faults: readonly FaultKind[]
  /** The run lasts this long, or until all counted faults have occurred. */
  readonly minutes: number
  readonly kills?: number
  readonly powerLosses?: number
  readonly diskKinds: readonly DiskKind[]
  /** From one fault to the next, if the server has recovered by then. */
  readonly paceMs: number
  /** Pushes per second. */
  readonly rate: number
  /** An empty directory. */
  readonly place: string
  readonly log: (line: string) => void
}

export interface SoakResult extends SoakVerdict {
  readonly faults: number
  readonly durationMs: number
  readonly recoveriesMs: readonly number[]
  readonly serverErrors: ReadonlyMap<string, number>
}

const pollingCount = 4
const webhookCount = 4
const drainedWithinMs = 180_000
/** A lane of the producer ends when its last push was acknowledged. */
const endedWithinMs = 60_000
const processNames = ['receiver', 'poller', 'producer'] as const
type ProcessName = (typeof processNames)[number]

export async function runSoak(options: SoakOptions): Promise<SoakResult> {
  const run = new SoakRun(options)
  try {
    return await run.run()
  } finally {
    await run.end()
  }
}

class SoakRun {
  readonly #options: SoakOptions
  readonly #luck: Luck
  readonly #ledger: Ledger
  readonly #lives: ServerLives
  readonly #nemesis: Nemesis
  readonly #children = new Map<ProcessName, ChildProcess>()
  #faults = 0

  constructor(options: SoakOptions) {
    const { seed, place, diskKinds } = options
    this.#options = options
    this.#luck = new Luck(seed)
    this.#ledger = new Ledger(join(place, 'nemesis.ledger'))
    const disk = new SimulatedDisk(place)
    this.#lives = new ServerLives({
      dir: disk.root,
      env: disk.env,
      ledger: this.#ledger,
      logFile: join(place, 'server.log'),
      workers: 2,
    })
    this.#nemesis = new Nemesis({
      disk,
      diskKinds,
      lives: this.#lives,
      ledger: this.#ledger,
      luck: this.#luck,
      log: (line) => this.#log(line),
    })
  }

  async run(): Promise<SoakResult> {
    const beginMs = nowMs()
    await this.#lives.settled()
    const client = new SoakClient(this.#lives, this.#ledger)
    const task = await this.#makeTask(client)
    await this.#fork('receiver', task)
    await client.setWebhooks(task)
    await this.#fork('poller', task)
    await this.#fork('producer', task)
    const failure = await this.#inflictAll().catch((error: unknown) => String(error))
    const isFinished = failure === undefined && (await this.#finish(client, task))
    if (failure !== undefined) this.#broken(failure)
    const entries = [...processNames, 'nemesis'].flatMap((name) => readLedger(this.#file(name)))
    return {
      ...checkLedgers(entries, { isFinished }),
      faults: this.#faults,
      durationMs: nowMs() - beginMs,
      recoveriesMs: this.#nemesis.recoveriesMs,
      serverErrors: this.#lives.errors,
    }
  }

  async end(): Promise<void> {
    for (const child of this.#children.values()) child.kill('SIGKILL')
    await this.#lives.kill()
    this.#ledger.close()
  }

  async #inflictAll(): Promise<undefined> {
    const { faults: kinds, kills, powerLosses, minutes, paceMs, log } = this.#options
    const plan = new FaultPlan({ luck: this.#luck, kinds, kills, powerLosses })
    const beginMs = nowMs()
    const endMs = beginMs + minutes * 60_000
    for (let dueMs = beginMs; nowMs() < endMs; ) {
      const fault = plan.next()
      if (fault === undefined) return
      await this.#nemesis.inflict(fault)
      this.#faults++
      for (const [name, child] of this.#children) {
        if (child.exitCode !== null) throw new Error(`the ${name} has ended`)
      }
      if (this.#faults % 50 === 0) {
        log(`${this.#faults} faults in ${Math.round((nowMs() - beginMs) / 1_000)} s`)
      }
      dueMs = Math.max(dueMs, nowMs() - paceMs) + this.#luck.int(paceMs / 2, (paceMs * 3) / 2)
      await pause(Math.max(dueMs - nowMs(), 0))
    }
  }

  /** Without further faults, everything that is pending must be delivered; the rest is recorded. */
  async #finish(client: SoakClient, task: SoakTask): Promise<boolean> {
    try {
      await this.#nemesis.recover()
      await this.#stop('producer')
      this.#log('calm; the producer has ended')
      const left = await client.drained(task, drainedWithinMs)
      if (left > 0)
        this.#broken(`${left} updates were not delivered in ${drainedWithinMs} ms of calm`)
      this.#log('drained')
      await this.#stop('poller')
      await this.#stop('receiver')
      await client.noteLeft(task)
      const code = await this.#lives.stop('SIGTERM')
      if (code !== 0) this.#broken(`the server ended with ${code} after SIGTERM`)
      return true
    } catch (error) {
      this.#broken(`the run could not be finished: ${String(error)}`)
      return false
    }
  }

  #log(line: string): void {
    const { place } = this.#options
    appendFileSync(join(place, 'nemesis.log'), `${nowMs().toFixed(0)} ${line}\n`)
  }

  #broken(what: string): void {
    this.#ledger.add({ kind: 'broken', what, atMs: nowMs() })
  }

  async #makeTask(client: SoakClient): Promise<SoakTask> {
    const { seed, rate } = this.#options
    const { botUrl, privateUrl } = this.#lives
    const bots: SoakBot[] = []
    for (let index = 0; index < pollingCount + webhookCount; index++) {
      bots.push(await client.register(this.#luck.int(100, 2 ** 31), index === 0))
    }
    const receiverPort = await freePort()
    return {
      ledger: '',
      seed,
      rate,
      botUrl,
      privateUrl,
      key: client.key,
      pollingBots: bots.slice(0, pollingCount),
      webhookBots: bots.slice(pollingCount),
      receiverPort,
    }
  }

  async #fork(name: ProcessName, task: SoakTask): Promise<void> {
    const file = fileURLToPath(new URL(`./${name}.js`, import.meta.url))
    const child = fork(file, [JSON.stringify({ ...task, ledger: this.#file(name) })])
    this.#children.set(name, child)
    await once(child, 'message')
  }

  async #stop(name: ProcessName): Promise<void> {
    const child = this.#children.get(name)
    if (child === undefined) return
    const ended = once(child, 'exit')
    const timer = setTimeout(() => child.kill('SIGKILL'), endedWithinMs)
    child.send('stop')
    const [code] = await ended
    clearTimeout(timer)
    if (code !== 0) this.#broken(`the ${name} ended with ${code}`)
  }

  #file(name: string): string {
    return join(this.#options.place, `${name}.ledger`)
  }
}
