/**
 * What the bot programs of this folder have in common: each is a bot as users of its framework write it, run as a
 * process of its own by test/support/framework-bot.ts, in whatever language it is.
 *
 * It is told its task as JSON in the variable BOT_TASK, and to stop by the end of its standard input. It tells what
 * happens in lines of JSON on standard output: `{"ready":true}` once it polls, or once its webhook is set,
 * `{"text":"..."}` for each message it handles, in the order in which it handles them, and `{"failed":"..."}` where its
 * framework gives up. Having stopped as its framework stops it ends with code 0, having given up with 1.
 *
 * Told to stop it asks for the state of its webhook, if it has one, says it, `{"webhook":{...}}`, and deletes it.
 *
 * A message `answer me` is answered, where the framework can do that in its answer to the webhook's delivery.
 */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type RequestListener, Server } from 'node:http'
import { portOf } from '../../support/port.ts'

export interface BotTask {
  /** `http://127.0.0.1:PORT` of the bot API. */
  readonly apiRoot: string
  readonly token: string
  readonly mode: 'polling' | 'webhook'
  /** Of the webhook. */
  readonly secret: string
  /** A webhook that is not its own: it only sets it, with its certificate. */
  readonly upload?: CertificateUpload
  /** Whether it is a bot of the test environment, by its framework's switch. */
  readonly isTest?: boolean
  /** What it polls for; absent: what its framework asks for by itself. */
  readonly allowedUpdates?: readonly ('message' | 'message_reaction')[]
  /** The message that takes long: its handler returns after the bot was told to stop. */
  readonly holdsAt?: string
}

export interface CertificateUpload {
  readonly url: string
  /** The path of its file. */
  readonly certificate: string
}

export interface BotVoice {
  readonly ready: () => void
  /** Resolves when the message is handled; the handler waits for it. */
  readonly text: (text: string | undefined) => Promise<void>
  /** Of its webhook, as its framework gets it. */
  readonly webhook: (info: object) => void
  /** The framework has given up; the process ends. */
  readonly failed: (error: unknown) => void
}

/** `start` resolves with what stops the bot as its framework stops. */
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
    webhook: (info) => tell({ webhook: info }),
    failed: giveUp,
  })
  // Called first when told, before handlers that wait for the same go on.
  process.stdin.prependListener('end', () => {
    Promise.resolve(stop()).then(() => process.exit(0), giveUp)
  })
  process.stdin.resume()
}

/** A web server on a free port of loopback, as the bot's webhook: the framework's own, or one around its handler. */
export async function listenForWebhook(receiver: RequestListener | Server): Promise<string> {
  const server = receiver instanceof Server ? receiver : createServer(receiver)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return `http://127.0.0.1:${portOf(server)}/updates`
}

/** Where the framework has no receiver of its own: the body of a delivery. */
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
