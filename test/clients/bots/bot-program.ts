/**
 * The common part of the bot programs in this folder.
 *
 * Each program is a bot as users of its framework write it. test/support/bots/framework-bot.ts runs it as a separate process,
 * whatever its language is. The variable BOT_TASK has its task as JSON, and the end of standard input tells it to stop.
 *
 * A program reports what happens as lines of JSON on standard output: `{"ready":true}` when it polls or its webhook is
 * set, `{"text":"..."}` for each message that it handles, in the order of handling, and `{"failed":"..."}` if its
 * framework gives up. It exits with code 0 after it was stopped as its framework stops, and with 1 after it gave up.
 *
 * A program with a webhook that is told to stop requests the state of its webhook, reports it as `{"webhook":{...}}`,
 * and deletes the webhook.
 *
 * It replies to a message `answer me` if the framework can do so in its response to the webhook's delivery. To
 * `send me the file` the programs of test/clients/relay.test.ts reply with `here it is`, download the file FILE as their
 * framework does, and report what is in it as `{"file":"..."}`.
 */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type RequestListener, Server } from 'node:http'
import { portOf } from '../../support/kit/port.ts'

export interface BotTask {
  /** `http://127.0.0.1:PORT` of the bot API. */
  readonly apiRoot: string
  readonly token: string
  readonly mode: 'polling' | 'webhook'
  /** The secret of the webhook. */
  readonly secret: string
  /** A webhook elsewhere, which the program only sets, with its certificate. */
  readonly upload?: CertificateUpload
  /** Whether it is a bot of the test environment, by its framework's option. */
  readonly isTest?: boolean
  /** The update types to poll for; by default those that its framework requests. */
  readonly allowedUpdates?: readonly ('message' | 'message_reaction')[]
  /** The message with the slow handler, which returns after the bot was told to stop. */
  readonly holdsAt?: string
}

export interface CertificateUpload {
  readonly url: string
  /** The path of the file. */
  readonly certificate: string
}

export interface BotVoice {
  readonly ready: () => void
  /** Resolves when the message is handled; the handler waits for it. */
  readonly text: (text: string | undefined) => Promise<void>
  /** Reports what is in the file that was downloaded. */
  readonly file: (content: string) => void
  /** Reports the state of the webhook, as the framework received it. */
  readonly webhook: (info: object) => void
  /** Reports that the framework has given up; the process ends. */
  readonly failed: (error: unknown) => void
}

/** Starts a bot and resolves with a function that stops it as its framework does. */
export type StartBot = (task: BotTask, voice: BotVoice) => Promise<() => unknown>

export async function runBotProgram(start: StartBot): Promise<void> {
  const task: BotTask = JSON.parse(process.env['BOT_TASK'] ?? '')
  process.on('uncaughtException', giveUp)
  const told = new Promise<void>((resolve) => void process.stdin.on('end', resolve))
  const stop = await start(task, {
    ready: () => tell({ ready: true }),
    text: async (text) => {
      tell({ text })
      if (text === task.holdsAt) await told
    },
    file: (content) => tell({ file: content }),
    webhook: (info) => tell({ webhook: info }),
    failed: giveUp,
  })
  // This listener runs first, before handlers that wait for the same event go on.
  process.stdin.prependListener('end', () => {
    Promise.resolve(stop()).then(() => process.exit(0), giveUp)
  })
  process.stdin.resume()
}

/** Starts a web server on a free loopback port for the bot's webhook: the framework's server, or one around its handler. */
export async function listenForWebhook(receiver: RequestListener | Server): Promise<string> {
  const server = receiver instanceof Server ? receiver : createServer(receiver)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return `http://127.0.0.1:${portOf(server)}/updates`
}

/** Reads the body of a delivery, for frameworks without a receiver. */
export async function readJson<T>(request: IncomingMessage): Promise<T> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk)
  return JSON.parse(Buffer.concat(chunks).toString())
}

function tell(line: object): void {
  process.stdout.write(`${JSON.stringify(line)}\n`)
}

function giveUp(error: unknown): void {
  tell({ failed: String(error) })
  process.exit(1)
}
