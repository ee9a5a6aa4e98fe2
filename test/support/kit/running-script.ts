/** Runs a script of the checkout as in a terminal: a command line, its output, typed lines, Ctrl-C. */
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { once } from 'node:events'
import type { TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'

/** Builds and starts take a while, most of all on a busy machine. */
const patienceMs = 180_000
const root = fileURLToPath(new URL('../../../../', import.meta.url))

export class RunningScript {
  readonly #child: ChildProcessWithoutNullStreams
  readonly #closed: Promise<unknown>
  #output = ''
  #isEnded = false

  /** Runs `command`, one line of a shell, in the checkout. It is killed at the end of the test. */
  constructor(t: TestContext, command: string, env: NodeJS.ProcessEnv = {}) {
    this.#child = spawn('bash', ['-c', `exec ${command}`], {
      cwd: root,
      env: { ...process.env, ...env },
    })
    this.#closed = once(this.#child, 'close')
    this.#child.once('close', () => {
      this.#isEnded = true
      this.#child.emit('output')
    })
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => {
        this.#output += text
        this.#child.emit('output')
      })
    }
    // The script may end before it has read everything that is typed.
    this.#child.stdin.on('error', () => undefined)
    t.after(() => this.end('SIGKILL'))
  }

  /** Everything that it has printed, on both streams. */
  get output(): string {
    return this.#output
  }

  get isEnded(): boolean {
    return this.#isEnded
  }

  /** Resolves when the output matches, which must happen before the script ends. */
  async printed(pattern: RegExp): Promise<RegExpExecArray> {
    const signal = AbortSignal.timeout(patienceMs)
    for (;;) {
      const match = pattern.exec(this.#output)
      if (match !== null) return match
      const missing = (): Error => new Error(`no ${String(pattern)} in:\n${this.#output}`)
      if (this.#isEnded) throw missing()
      await once(this.#child, 'output', { signal }).catch(() => {
        throw missing()
      })
    }
  }

  type(line: string): void {
    this.#child.stdin.write(`${line}\n`)
  }

  /** Returns the exit code, or null if the signal itself ended the script. */
  async end(signal: NodeJS.Signals): Promise<number | null> {
    if (!this.#isEnded) this.#child.kill(signal)
    return this.exitCode()
  }

  /** Resolves with the exit code when the script has ended by itself. */
  async exitCode(): Promise<number | null> {
    await this.#closed
    return this.#child.exitCode
  }
}
