/**
 * A fake origin as a process of its own, so that servers can be killed beside it and a busy test delays none of its
 * responses.
 *
 *     const origin = await Origin.start(t)
 *     await origin.control.register([{ botId: 4711, token }])
 *     await origin.control.push(4711, [chatMessage(1, 'hello')])
 *     ... a bot or a relay polls origin.url ...
 *     await origin.control.calls()
 */
import assert from 'node:assert/strict'
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { KeyPair } from '../network/certificates.ts'
import type { EndingTest } from '../server/server.ts'
import type { OriginControl } from './origin-calls.ts'
import type { OriginQuestion } from './origin-process.ts'

const program = fileURLToPath(new URL('./origin-process.js', import.meta.url))

interface OriginReply {
  readonly id: number
  readonly value?: unknown
  readonly error?: string
}

interface Waiting {
  readonly resolve: (value: unknown) => void
  readonly reject: (error: Error) => void
}

export class Origin {
  readonly url: string
  readonly pid: number
  readonly control: OriginControl
  readonly #child: ChildProcess
  readonly #waiting = new Map<number, Waiting>()
  #lastId = 0

  private constructor(child: ChildProcess, url: string) {
    assert(child.pid !== undefined)
    this.#child = child
    this.url = url
    this.pid = child.pid
    child.on('message', ({ id, value, error }: OriginReply) => {
      const waiting = this.#waiting.get(id)
      this.#waiting.delete(id)
      if (error === undefined) waiting?.resolve(value)
      else waiting?.reject(new Error(error))
    })
    // Each of its methods is a question to the process.
    this.control = new Proxy({} as OriginControl, {
      get:
        (_target, name: keyof OriginControl) =>
        (...parameters: readonly unknown[]) =>
          this.#ask({ name, parameters }),
    })
  }

  /** `https` with these keys, for 127.0.0.1. The origin ends with the test. */
  static async start(t: EndingTest, tls?: KeyPair): Promise<Origin> {
    const secrets = tls === undefined ? {} : { ORIGIN_TLS: JSON.stringify(tls) }
    const env = { ...process.env, ...secrets }
    const child = fork(program, [], { env, execArgv: [], serialization: 'advanced' })
    t.after(async () => void child.kill('SIGKILL'))
    const [said]: unknown[] = await once(child, 'message')
    const { port } = said as { readonly port: number }
    return new Origin(child, `http${tls === undefined ? '' : 's'}://127.0.0.1:${port}`)
  }

  #ask(question: Omit<OriginQuestion, 'id'>): Promise<unknown> {
    const id = ++this.#lastId
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject })
      this.#child.send({ id, ...question })
    })
  }
}
