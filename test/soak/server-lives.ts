/**
 * The lives of the server of a soak run: one directory, the same ports, one process group after another. Each life's log
 * is searched for lines that must never appear.
 */
import { appendFileSync } from 'node:fs'
import { type Place, send, ServerProcess } from '../support/server/server.ts'
import { type Ledger, nowMs } from './ledger.ts'
import { pause } from './soak-process.ts'

export interface ServerLivesOptions {
  readonly dir: string
  readonly env: NodeJS.ProcessEnv
  readonly ledger: Ledger
  /** The file that gets the output of all lives. */
  readonly logFile: string
  readonly workers: number
}

/** The loss of a worker by anything but our SIGKILL, and failures that are bugs. */
const brokenLine =
  /"msg":"(?:worker was ended by (?!SIGKILL)|a request failed because of a bug|a private request failed because of a bug)/
const damagedLine = /"msg":"(?:a log of this shard was damaged|LevelDB dropped damaged data)/
const tornLine = /"msg":"(?:the end of a file was not synced|the end of a log was cut off)/
const readyWithinMs = 120_000
/** Deliveries may take 10 s after SIGTERM; the rest is for a busy machine. */
const endedWithinMs = 90_000

export class ServerLives {
  readonly #options: ServerLivesOptions
  #place: Place
  #life: ServerProcess
  #ready: Promise<{ readonly bot: string; readonly private: string }>
  #isSettled = false
  #errors = new Map<string, number>()

  constructor(options: ServerLivesOptions) {
    this.#options = options
    this.#place = { dir: options.dir, botPort: 0, adminPort: 0 }
    this.#life = this.#begin()
    this.#ready = this.#life.ready
  }

  /** The log messages of the levels warning and error, and how often each was logged. */
  get errors(): ReadonlyMap<string, number> {
    return this.#errors
  }

  /** The data directory. */
  get dir(): string {
    return this.#options.dir
  }

  /** Whether this life has been ready once. Until then the loss of a worker ends it. */
  get isStarted(): boolean {
    return this.#isSettled
  }

  get pid(): number {
    return this.#life.pid
  }

  get botUrl(): string {
    return `http://127.0.0.1:${this.#place.botPort}`
  }

  get privateUrl(): string {
    return `http://127.0.0.1:${this.#place.adminPort}`
  }

  workerPids(): readonly number[] {
    return this.#life.workerPids()
  }

  output(): string {
    return this.#life.output()
  }

  /** Starts a new life, without waiting until it is ready; the previous one must have ended. */
  start(): void {
    this.#life = this.#begin()
    this.#ready = this.#life.ready
  }

  /** Resolves when every shard accepts pushes; rejects if that does not happen. */
  async settled(): Promise<void> {
    const { bot, private: admin } = await this.#ready
    const [botPort, adminPort] = [portIn(bot), portIn(admin)]
    this.#place = { ...this.#place, botPort, adminPort }
    const { workers } = this.#options
    const endMs = nowMs() + readyWithinMs
    while (this.workerPids().length < workers || !(await this.#isReady())) {
      if (nowMs() > endMs) throw new Error(`not ready again within ${readyWithinMs} ms`)
      await pause(50)
    }
    this.#isSettled = true
  }

  /** Sends SIGKILL to all processes; resolves when the last one is gone. */
  async kill(): Promise<void> {
    await this.#life.kill()
    this.#ended()
  }

  /**
   * Sends the signal to the primary alone. Resolves with its exit code when the last process is gone; null if it had to
   * be killed.
   */
  async stop(signal: NodeJS.Signals): Promise<number | null> {
    const timer = setTimeout(() => void this.#life.kill(), endedWithinMs)
    const code = await this.#life.stop(signal)
    clearTimeout(timer)
    this.#ended()
    return code
  }

  async #isReady(): Promise<boolean> {
    const url = `${this.privateUrl}/readyz`
    const answer = await send({ method: 'GET', url }).catch(() => undefined)
    if (answer === undefined) return false
    const { broken_shards: broken, poisoned_shards: poisoned } = answer.body
    if (broken !== undefined) throw new Error(`shards were set aside: ${JSON.stringify(broken)}`)
    return answer.status === 200 && poisoned === undefined
  }

  #begin(): ServerProcess {
    const { env, workers } = this.#options
    this.#isSettled = false
    const life = new ServerProcess(this.#place, { workers, env, flags: ['--local', '--shards=4'] })
    // Code that awaits `ready` gets the error; a life may also be ended before that.
    life.ready.catch(() => undefined)
    return life
  }

  #ended(): void {
    const { dir, ledger, logFile } = this.#options
    // A report must not depend on the directory of the run.
    const output = this.#life.output().replaceAll(dir, 'DIR')
    appendFileSync(logFile, output)
    for (const line of output.split('\n')) {
      if (brokenLine.test(line)) ledger.add({ kind: 'broken', what: line, atMs: nowMs() })
      if (damagedLine.test(line)) ledger.add({ kind: 'damaged', what: line, atMs: nowMs() })
      if (tornLine.test(line)) ledger.add({ kind: 'torn', what: line, atMs: nowMs() })
      const [, message] = /"level":[45]0.*"msg":"([^"]*)"/.exec(line) ?? []
      if (message !== undefined) this.#errors.set(message, (this.#errors.get(message) ?? 0) + 1)
    }
  }
}

function portIn(address: string): number {
  return Number(new URL(`http://${address}`).port)
}
