/**
 * Injects one fault after another into the server of a soak run, and brings the server back each time. A third of the
 * kills and power losses do not wait until the server has recovered from the previous fault: they hit a start, a reload
 * or a repair.
 */
import { unreachable } from '../../src/kit/errors.ts'
import type { DiskKind } from '../fault/power/disk-journal.ts'
import type { SimulatedDisk } from '../fault/power/simulated-disk.ts'
import { isRunning } from '../support/kit/is-running.ts'
import type { Luck } from '../support/simulation/luck.ts'
import { until } from '../support/kit/until.ts'
import type { FaultKind } from './fault-plan.ts'
import { type Ledger, nowMs } from './ledger.ts'
import type { ServerLives } from './server-lives.ts'
import { pause } from './soak-process.ts'
import { sendSignal } from '../support/kit/send-signal.ts'

export interface NemesisOptions {
  readonly disk: SimulatedDisk
  readonly diskKinds: readonly DiskKind[]
  readonly lives: ServerLives
  readonly ledger: Ledger
  readonly luck: Luck
  readonly log: (line: string) => void
}

/** A further reload waits for a worker that was replaced before, which may use its 90 s for its connections. */
const reloadWithinMs = 240_000
/** On a busy machine the end of a process takes a while. */
const goneWithinMs = 60_000

export class Nemesis {
  /** The time from a fault, or the first of several, until the server accepted pushes again. */
  readonly recoveriesMs: number[] = []
  readonly #options: NemesisOptions
  #hurtSinceMs: number | undefined

  constructor(options: NemesisOptions) {
    this.#options = options
  }

  async inflict(fault: FaultKind): Promise<void> {
    const { luck } = this.#options
    const isHasty = (fault === 'kill' || fault === 'power') && luck.chance(1 / 3)
    if (isHasty) await pause(luck.int(0, 1_500))
    else await this.recover()
    await this.#strike(fault)
  }

  /** Resolves when the server serves everything again. */
  async recover(): Promise<void> {
    if (this.#hurtSinceMs === undefined) return
    await this.#options.lives.settled()
    const atMs = nowMs()
    this.recoveriesMs.push(atMs - this.#hurtSinceMs)
    this.#hurtSinceMs = undefined
    this.#options.ledger.add({ kind: 'ready', atMs })
  }

  #strike(fault: FaultKind): Promise<void> {
    switch (fault) {
      case 'kill':
        return this.#kill()
      case 'stop':
        return this.#stop()
      case 'term':
        return this.#term()
      case 'reload':
        return this.#reload()
      case 'power':
        return this.#losePower()
      case 'disk':
        return this.#failDisk()
      default:
        return unreachable(fault)
    }
  }

  #begin(fault: string): void {
    const atMs = nowMs()
    this.#hurtSinceMs ??= atMs
    this.#options.ledger.add({ kind: 'fault', fault, atMs })
    this.#options.log(fault)
  }

  async #kill(): Promise<void> {
    const { luck, lives } = this.#options
    const whom = luck.pick(['worker', 'worker', 'worker', 'primary', 'all'] as const)
    const worker = this.#anyWorker()
    if (whom === 'worker' && worker !== undefined && lives.isStarted) {
      this.#begin('kill -9 of a worker')
      return this.#killWorker(worker)
    }
    this.#begin(whom === 'primary' ? 'kill -9 of the primary' : 'kill -9 of all processes')
    if (whom === 'primary') await lives.stop('SIGKILL')
    else await lives.kill()
    lives.start()
  }

  async #killWorker(worker: number): Promise<void> {
    sendSignal(worker, 'SIGKILL')
    await until(
      () => !isRunning(worker) || !this.#options.lives.workerPids().includes(worker),
      goneWithinMs,
    )
  }

  async #stop(): Promise<void> {
    const { luck } = this.#options
    const worker = this.#anyWorker()
    if (worker === undefined) return
    this.#begin('SIGSTOP of a worker')
    sendSignal(worker, 'SIGSTOP')
    await pause(luck.int(50, 1_500))
    sendSignal(worker, 'SIGCONT')
  }

  async #term(): Promise<void> {
    const { lives, ledger } = this.#options
    this.#begin('SIGTERM')
    const code = await lives.stop('SIGTERM')
    const what = `the server ended with ${code} after SIGTERM`
    if (code !== 0) ledger.add({ kind: 'broken', what, atMs: nowMs() })
    lives.start()
  }

  async #reload(): Promise<void> {
    const { lives, luck } = this.#options
    const ended = /"msg":"(?:reloaded|the reload failed[^"]*)"/g
    const before = [...lives.output().matchAll(ended)].length
    this.#begin('SIGHUP')
    sendSignal(lives.pid, 'SIGHUP')
    // Sometimes the next fault occurs during the reload.
    if (luck.chance(1 / 3)) return pause(luck.int(0, 3_000))
    await until(() => [...lives.output().matchAll(ended)].length > before, reloadWithinMs)
  }

  async #losePower(): Promise<void> {
    const { disk, diskKinds, lives, luck, log } = this.#options
    const kind = luck.pick(diskKinds)
    this.#begin(`power loss, ${kind}`)
    await lives.kill()
    for (const loss of disk.losePower({ kind, luck })) log(`  ${loss}`)
    lives.start()
  }

  async #failDisk(): Promise<void> {
    const { disk, luck } = this.#options
    const fault = luck.pick(['full', 'sync', 'write'] as const)
    this.#begin(`disk failure: ${fault}`)
    disk.fail(fault)
    await pause(luck.int(50, 1_500))
    const worker = this.#anyWorker()
    if (worker !== undefined && luck.chance(0.2)) await this.#killWorker(worker)
    disk.fail('none')
  }

  #anyWorker(): number | undefined {
    const pids = this.#options.lives.workerPids()
    return pids.length === 0 ? undefined : this.#options.luck.pick(pids)
  }
}
