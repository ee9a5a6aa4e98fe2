import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import type { TestContext } from 'node:test'
import { promisify } from 'node:util'

export const run = promisify(execFile)

/** A running process and the next lines of its output. It is killed at the end of the test. */
export interface RunningChild {
  readonly process: ChildProcess
  nextLine(): Promise<string>
  /** Sends SIGKILL and waits until the process is gone. */
  kill(): Promise<void>
}

export function startChild(t: TestContext, args: readonly string[]): RunningChild {
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  const exited = once(child, 'exit')
  t.after(() => child.kill('SIGKILL'))
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  return {
    process: child,
    async nextLine() {
      const { done, value } = await lines.next()
      if (done) throw new Error('the child ended before its next line')
      return value
    },
    async kill() {
      child.kill('SIGKILL')
      await exited
    },
  }
}
