/**
 * A process of the bench itself (load generator, sink, yardstick). It is forked, gets messages, and sends one reply per
 * message. The other side is `serveHelper`.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { CaseContext, CpuUsByProcess } from './contestant.ts'
import { cpuUsOf, processTree, residentBytesOf } from './process-cpu.ts'
import { type ThreadTimes, threadTimes } from './thread-cpu.ts'

interface Answer {
  readonly value?: unknown
  readonly error?: string
}

interface Waiting {
  resolve(value: unknown): void
  reject(error: Error): void
}

export class HelperProcess {
  readonly #name: string
  readonly #child: ChildProcess
  readonly #waiting: Waiting[] = []

  /**
   * @param file - a compiled module under bench/helpers, without its extension
   * @param name - the name under which its CPU time is shown, if it is not that of the file
   */
  constructor(file: string, owner: Pick<CaseContext, 'atEnd'>, name = file) {
    this.#name = name
    owner.atEnd(() => this.close())
    const path = fileURLToPath(new URL(`helpers/${file}.js`, import.meta.url))
    this.#child = fork(path, [], { execArgv: [], serialization: 'advanced' })
    this.#child.on('message', (message: Answer) => {
      const waiting = this.#waiting.shift()
      if (message.error === undefined) waiting?.resolve(message.value)
      else waiting?.reject(new Error(`${file}: ${message.error}`))
    })
    this.#child.once('exit', (code, signal) => {
      const error = new Error(`${file} ended with ${signal ?? code} before it answered`)
      for (const waiting of this.#waiting.splice(0)) waiting.reject(error)
    })
  }

  /** Replies arrive in the order of the questions. */
  ask<T>(question: object): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      // oxlint-disable-next-line no-unsafe-type-assertion -- the bench contains both sides
      this.#waiting.push({ resolve: (value) => resolve(value as T), reject })
      // A helper that has ended by itself takes no question.
      this.#child.send(question, (error) => {
        if (error !== null) reject(error)
      })
    })
  }

  cpuUs(): number {
    return cpuUsOf(processTree(this.#child.pid ?? 0))
  }

  cpuUsByProcess(): CpuUsByProcess {
    return { [this.#name]: this.cpuUs() }
  }

  threadTimes(): Readonly<Record<string, ThreadTimes>> {
    return { [this.#name]: threadTimes(processTree(this.#child.pid ?? 0)) }
  }

  residentBytes(): number {
    return residentBytesOf(processTree(this.#child.pid ?? 0))
  }

  /** A helper ends when its channel closes. */
  async close(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return
    const exited = new Promise<void>((resolve) => this.#child.once('exit', () => resolve()))
    const force = setTimeout(() => this.#child.kill('SIGKILL'), 2_000)
    this.#child.disconnect()
    await exited
    clearTimeout(force)
  }
}
