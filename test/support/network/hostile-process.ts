/** A hostile server in a process of its own, so that what an answer costs there is not counted here. */
import assert from 'node:assert/strict'
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import type { TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import type { HostileAnswer } from './hostile-answers.ts'
import { startHostileServer } from './hostile-server.ts'

/** What the other process tells after each message. */
interface Told {
  readonly origin: string
  readonly written: number
}

export class HostileProcess {
  readonly #child: ChildProcess
  readonly origin: string

  private constructor(child: ChildProcess, origin: string) {
    this.#child = child
    this.origin = origin
  }

  static async start(t: Pick<TestContext, 'after'>): Promise<HostileProcess> {
    const child = fork(fileURLToPath(import.meta.url))
    t.after(() => child.kill())
    const { origin } = await told(child)
    return new HostileProcess(child, origin)
  }

  /** Gives another answer from now on. */
  async answerWith(answer: HostileAnswer): Promise<void> {
    this.#child.send(answer)
    await told(this.#child)
  }

  /** How many bytes all connections have let it write of the present answer. */
  async written(): Promise<number> {
    this.#child.send('written?')
    return (await told(this.#child)).written
  }
}

async function told(child: ChildProcess): Promise<Told> {
  const [message]: Told[] = await once(child, 'message')
  return message ?? assert.fail()
}

/** What the child does. */
async function serve(): Promise<void> {
  const server = await startHostileServer({ after: () => undefined }, { head: '' })
  const tell = (): void => {
    const written = server.written().reduce((sum, bytes) => sum + bytes, 0)
    process.send?.({ origin: server.origin, written } satisfies Told)
  }
  process.on('message', (message: HostileAnswer | 'written?') => {
    if (message !== 'written?') server.answerWith(message)
    tell()
  })
  process.on('disconnect', () => process.exit())
  tell()
}

if (process.send !== undefined && process.argv[1] === fileURLToPath(import.meta.url)) await serve()
