/**
 * A TCP proxy that can stand still, as a network does that is cut: nothing arrives any more, and nobody is told. It is a
 * process of its own that is stopped with SIGSTOP. What was sent meanwhile arrives after SIGCONT, the end of a connection
 * included.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { EndingTest } from '../support/server/server.ts'

const programFile = fileURLToPath(new URL('./proxy-process.js', import.meta.url))

export class StallingProxy {
  /** One for each target. */
  readonly ports: readonly number[]
  readonly #child: ChildProcess

  constructor(child: ChildProcess, ports: readonly number[]) {
    this.#child = child
    this.ports = ports
  }

  /** The proxy ends with the test at the latest. */
  static async start(t: EndingTest, targets: readonly number[]): Promise<StallingProxy> {
    const child = spawn(process.execPath, [programFile, ...targets.map(String)], {
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    t.after(async () => void child.kill('SIGKILL'))
    const [line]: unknown[] = await once(createInterface({ input: child.stdout }), 'line')
    return new StallingProxy(child, JSON.parse(String(line)))
  }

  stall(): void {
    this.#child.kill('SIGSTOP')
  }

  goOn(): void {
    this.#child.kill('SIGCONT')
  }

  async close(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return
    const exited = once(this.#child, 'exit')
    this.#child.kill('SIGKILL')
    await exited
  }
}
