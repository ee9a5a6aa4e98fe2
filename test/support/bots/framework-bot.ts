/**
 * Runs a bot program of test/clients/bots as a separate process.
 *
 *     const bot = await startBot(t, framework, { apiRoot: server.botUrl, token, mode: 'polling' })
 *     await bot.receive(3)
 *     await bot.stop()
 *
 * Programs that still run at the end of the test are killed.
 */
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { EventEmitter, once } from 'node:events'
import { createInterface } from 'node:readline'
import type { TestContext } from 'node:test'
import type { BotTask } from '../../clients/bots/bot-program.ts'
import type { Framework } from '../../clients/frameworks.ts'

export const webhookSecret = 'right-secret'
/** The slowest framework stops after ten seconds, and another may wait half a minute before it retries. */
const patienceMs = 90_000

export async function startBot(
  t: TestContext,
  framework: Framework,
  task: Omit<BotTask, 'secret'>,
): Promise<FrameworkBot> {
  const bot = new FrameworkBot(framework, { ...task, secret: webhookSecret })
  t.after(() => bot.kill())
  await bot.ready()
  return bot
}

interface Said {
  readonly ready?: true
  readonly text?: string
  readonly file?: string
  readonly webhook?: WebhookInfo
  readonly failed?: string
}

/** The fields that tests use. */
export interface WebhookInfo {
  readonly url: string
  readonly has_custom_certificate: boolean
  readonly pending_update_count: number
  readonly last_error_message?: string
}

export class FrameworkBot {
  /** Texts of the messages that it handled, in its order. */
  readonly texts: string[] = []
  readonly #framework: Framework
  readonly #child: ChildProcess
  readonly #events = new EventEmitter()
  readonly #output: string[] = []
  #isReady = false
  #failure: string | undefined
  #webhook: WebhookInfo | undefined
  #file: string | undefined
  #hasEnded = false

  constructor(framework: Framework, task: BotTask) {
    this.#framework = framework
    const [file = '', ...args] = framework.command
    const env = { ...process.env, BOT_TASK: JSON.stringify(task) }
    this.#child = spawn(file, args, { env, stdio: ['pipe', 'pipe', 'pipe'] })
    const { stdin, stdout, stderr } = this.#child
    assert(stdin !== null && stdout !== null && stderr !== null)
    // The process may have ended by itself when it is told to stop.
    stdin.on('error', () => undefined)
    stderr.on('data', (chunk: Buffer) => this.#output.push(chunk.toString()))
    createInterface({ input: stdout }).on('line', (line) => this.#hear(line))
    this.#child.on('close', () => {
      this.#hasEnded = true
      this.#events.emit('change')
    })
  }

  /** Why the framework gave up; undefined if it has not. */
  get failure(): string | undefined {
    return this.#failure
  }

  /** The state of its webhook when it was told to stop, as its framework received it. */
  get webhook(): WebhookInfo | undefined {
    return this.#webhook
  }

  async ready(): Promise<void> {
    await this.#until(() => this.#isReady, 'ready')
  }

  /** Resolves when it has handled this many messages in total. */
  async receive(count: number): Promise<void> {
    await this.#until(() => this.texts.length >= count, `${count} messages`)
  }

  /** Resolves when it has started to handle the message. */
  async hear(text: string): Promise<void> {
    await this.#until(() => this.texts.includes(text), `message ${text}`)
  }

  /** Resolves with what is in the file that it has downloaded. */
  async downloaded(): Promise<string> {
    await this.#until(() => this.#file !== undefined, 'a file')
    return this.#file ?? ''
  }

  /** Resolves with the reason when it has given up. */
  async gaveUp(): Promise<string> {
    await this.#until(() => this.#failure !== undefined, 'giving up')
    await this.#ended()
    return this.#failure ?? ''
  }

  /** Stops the program as its framework stops. */
  async stop(): Promise<void> {
    this.#child.stdin?.end()
    await this.#ended()
    assert.equal(this.#child.exitCode, 0, this.#saying('it did not stop in order'))
  }

  async kill(): Promise<void> {
    if (!this.#hasEnded) this.#child.kill('SIGKILL')
    await this.#ended()
  }

  async #ended(): Promise<void> {
    await this.#changed(() => this.#hasEnded, 'end')
  }

  async #until(isThere: () => boolean, what: string): Promise<void> {
    await this.#changed(() => isThere() || this.#hasEnded, what)
    assert(isThere(), this.#saying(`it ended before ${what}`))
  }

  /** Makes a test that waits in vain report what it waited for. */
  async #changed(isSo: () => boolean, what: string): Promise<void> {
    const signal = AbortSignal.timeout(patienceMs)
    try {
      while (!isSo()) await once(this.#events, 'change', { signal })
    } catch {
      assert.fail(this.#saying(`no ${what} in ${patienceMs} ms`))
    }
  }

  #hear(line: string): void {
    this.#output.push(`${line}\n`)
    const said = saidIn(line)
    if (said.ready) this.#isReady = true
    if (said.text !== undefined) this.texts.push(said.text)
    if (said.file !== undefined) this.#file = said.file
    if (said.webhook !== undefined) this.#webhook = said.webhook
    if (said.failed !== undefined) this.#failure = said.failed
    this.#events.emit('change')
  }

  #saying(what: string): string {
    return `${this.#framework.name}: ${what}; it wrote:\n${this.#output.join('')}`
  }
}

/** Frameworks print other lines in between. */
function saidIn(line: string): Said {
  try {
    return JSON.parse(line)
  } catch {
    return {}
  }
}
