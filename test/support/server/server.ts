/**
 * The real server for a test: `postbote serve` with its default options, in a separate directory, on free ports of the
 * loopback interface, with all of its processes.
 *
 *     const server = await startServer(t)
 *     const bot = await server.register()
 *     await server.push(bot.botId, { message: { text: 'hello' } })
 *     const { body } = await server.call(bot.token, 'getUpdates')
 *     const again = await server.restart({ workers: 1 })   // or kill() first: same directory, same ports
 *
 * Processes that still run at the end of the test are killed, then the directory is removed. Each call opens a separate
 * connection, so that none uses a socket of a server that is gone; a test that needs keep-alive brings its own client.
 */
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { type Agent, type OutgoingHttpHeaders, request } from 'node:http'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { assertDocumented } from './documented-response.ts'
import { childrenOf } from '../kit/processes-below.ts'
import { temporaryRoot } from '../kit/temporary-root.ts'
import { mainFile } from '../programs/postbote.ts'
import { sendSignal } from '../kit/send-signal.ts'

/** A start takes a while on a busy machine, while the rest of a suite runs. A start that never completes only fails later. */
const startTimeoutMs = 120_000

/** A function that runs at the end of a test. */
export type TestEnd = () => Promise<void>
export interface EndingTest {
  after(end: TestEnd): void
}

export interface ServerOptions {
  /** Default: 1, because each takes half a second of CPU to start. `unset` leaves the choice to the server. */
  readonly workers?: number | 'unset'
  /** Further flags of `postbote serve`, such as `--local`; later ones win. */
  readonly flags?: readonly string[]
  readonly env?: NodeJS.ProcessEnv
  /** A data directory; the server starts in a copy of it. */
  readonly data?: string
  /** The data directory, used as it is; otherwise the server gets one of its own. */
  readonly dir?: string
  /** The file of the admin key; otherwise the server makes one in its directory. */
  readonly adminKeyFile?: string
  /** The `ulimit -n` of each of its processes. */
  readonly descriptorsMax?: number
  /** The entry file of another version of the server. */
  readonly main?: string | undefined
}

export interface RegisteredBot {
  readonly botId: number
  readonly token: string
}

export interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly text: string
  /** The text parsed as JSON; undefined if it is not JSON. */
  // oxlint-disable-next-line typescript/no-explicit-any -- a test asserts its shape by using it
  readonly body: any
}

export interface Call {
  readonly method: string
  readonly url: string
  readonly headers?: OutgoingHttpHeaders
  readonly body?: string | Buffer
  readonly signal?: AbortSignal
  /** Default: a connection of its own. */
  readonly agent?: Agent
}

/** The properties of a server that a restart keeps. Port 0 is any free port. */
export interface Place {
  readonly dir: string
  readonly botPort: number
  readonly adminPort: number
}

/** Starts another kind of server if `TEST_START_SERVER` names the file that does: `npm run test:clients-on-cluster`. */
export async function startServer(t: EndingTest, options: ServerOptions = {}): Promise<Server> {
  const file = process.env['TEST_START_SERVER']
  if (file === undefined) return startSingleServer(t, options)
  const other: { readonly startServer: typeof startServer } = await import(file)
  return other.startServer(t, options)
}

/** Starts one server, or one node of several. */
export async function startSingleServer(
  t: EndingTest,
  options: ServerOptions = {},
): Promise<Server> {
  const dir = mkdtempSync(join(temporaryRoot, 'postbote-'))
  const place = { dir: options.dir ?? join(dir, 'data'), botPort: 0, adminPort: 0 }
  if (options.data !== undefined) cpSync(options.data, place.dir, { recursive: true })
  const running = new Set<ServerProcess>()
  t.after(async () => {
    await Promise.all([...running].map((each) => each.kill()))
    rmSync(dir, { recursive: true, force: true })
  })
  const start = async (at: Place, settings: ServerOptions): Promise<Server> => {
    const child = new ServerProcess(at, settings)
    running.add(child)
    const ready = await child.ready
    return new Server({ child, ready, place: at, options: settings, start })
  }
  return start(place, options)
}

/** The processes of a server, from one start to their end. */
export class ServerProcess {
  readonly child: ChildProcess
  readonly ready: Promise<{ bot: string; private: string }>
  readonly #output: string[] = []
  /** Workers write to the same pipes, so these close when the last process is gone. */
  readonly #closed: Promise<unknown[]>

  constructor(
    place: Place,
    { workers = 1, flags = [], env, adminKeyFile, descriptorsMax, main }: ServerOptions,
  ) {
    const args = [
      main ?? mainFile,
      'serve',
      `--dir=${place.dir}`,
      ...(workers === 'unset' ? [] : [`--workers=${workers}`]),
      '--http-ip-address=127.0.0.1',
      `--http-port=${place.botPort}`,
      `--admin-port=${place.adminPort}`,
      ...(adminKeyFile === undefined ? [] : [`--admin-key-file=${adminKeyFile}`]),
      ...flags,
    ]
    const limited = ['-c', `ulimit -n ${descriptorsMax}; exec "$0" "$@"`, process.execPath]
    const [file, given] =
      descriptorsMax === undefined ? [process.execPath, args] : ['sh', [...limited, ...args]]
    this.child = spawn(file, given, {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, ...env },
    })
    this.#closed = once(this.child, 'close')
    this.ready = this.#waitUntilReady()
  }

  get pid(): number {
    assert(this.child.pid !== undefined, 'the server was not started')
    return this.child.pid
  }

  output(): string {
    return this.#output.join('')
  }

  /** Includes processes that have ended and have not been waited for. */
  workerPids(): readonly number[] {
    return childrenOf(this.pid)
  }

  async kill(): Promise<void> {
    const pids = this.#isGone ? [] : [this.pid, ...this.workerPids()]
    for (const pid of pids) sendSignal(pid, 'SIGKILL')
    await this.#closed
  }

  async stop(signal: NodeJS.Signals): Promise<number | null> {
    if (!this.#isGone) sendSignal(this.pid, signal)
    return this.ended()
  }

  async ended(): Promise<number | null> {
    await this.#closed
    return this.child.exitCode
  }

  /** Its id may belong to another process by now. */
  get #isGone(): boolean {
    return this.child.exitCode !== null || this.child.signalCode !== null
  }

  #waitUntilReady(): Promise<{ bot: string; private: string }> {
    return new Promise((resolve, reject) => {
      const fail = (what: string): void =>
        reject(new Error(`the server ${what}; it wrote:\n${this.output()}`))
      const timer = setTimeout(fail, startTimeoutMs, 'did not get ready')
      for (const stream of [this.child.stdout, this.child.stderr]) {
        assert(stream !== null)
        createInterface({ input: stream }).on('line', (line) => {
          this.#output.push(`${line}\n`)
          if (!line.includes('"msg":"ready"')) return
          clearTimeout(timer)
          resolve(JSON.parse(line))
        })
      }
      this.child.once('close', () => {
        clearTimeout(timer)
        fail(`ended with ${this.child.exitCode ?? this.child.signalCode}`)
      })
    })
  }
}

interface ServerParts {
  readonly child: ServerProcess
  readonly ready: { readonly bot: string; readonly private: string }
  readonly place: Place
  readonly options: ServerOptions
  readonly start: (place: Place, options: ServerOptions) => Promise<Server>
}

export class Server {
  /** The data directory. */
  readonly dir: string
  /** `http://127.0.0.1:PORT`, for bots. */
  readonly botUrl: string
  /** The URL of the private listener, for producers and operators. */
  readonly privateUrl: string
  /** The admin key. */
  readonly key: string
  readonly primaryPid: number
  readonly #parts: ServerParts

  constructor(parts: ServerParts) {
    this.#parts = parts
    this.dir = parts.place.dir
    this.botUrl = `http://${parts.ready.bot}`
    this.privateUrl = `http://${parts.ready.private}`
    const keyFile = parts.options.adminKeyFile ?? join(this.dir, 'admin.key')
    this.key = readFileSync(keyFile, 'utf8').trim()
    this.primaryPid = parts.child.pid
  }

  /** Returns this server as clients see it that reach it at other addresses. It cannot be restarted. */
  reachedAt(ready: { readonly bot: string; readonly private: string }): Server {
    return new Server({ ...this.#parts, ready, start: neverAgain })
  }

  /** The ids of the worker processes that run now. */
  workerPids(): readonly number[] {
    return this.#parts.child.workerPids()
  }

  /**
   * Returns the id of one of them, the oldest first. Fails if there is none: a signal to 0 or -1, in place of an id, would
   * end other processes.
   */
  workerPid(which = 0): number {
    const pid = this.workerPids()[which]
    assert(pid !== undefined, `there is no worker process ${which}`)
    return pid
  }

  pids(): readonly number[] {
    return [this.primaryPid, ...this.workerPids()]
  }

  /** Everything that the processes have written to standard output and standard error. */
  output(): string {
    return this.#parts.child.output()
  }

  /** Calls a method of the bot API with its parameters as a JSON body. */
  call(token: string, method: string, parameters: object = {}): Promise<Answer> {
    return send({
      method: 'POST',
      url: `${this.botUrl}/bot${token}/${method}`,
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(parameters),
    })
  }

  /** Calls the private API with the admin key. The response must be one that docs/reference/openapi.json describes. */
  async admin(
    method: string,
    path: string,
    body?: object | string | Buffer,
    headers: OutgoingHttpHeaders = {},
  ): Promise<Answer> {
    const isText = typeof body === 'string' || Buffer.isBuffer(body)
    const answer = await send({
      method,
      url: this.privateUrl + path,
      headers: { authorization: `Bearer ${this.key}`, ...headers },
      ...(body === undefined ? {} : { body: isText ? body : JSON.stringify(body) }),
    })
    assertDocumented({ method, path }, answer)
    return answer
  }

  /** Registers a bot, with any free id unless one is given. */
  async register(botId?: number): Promise<RegisteredBot> {
    const id = botId === undefined ? {} : { bot_id: botId }
    const names = { first_name: 'Test', username: 'test_bot' }
    const { status, text, body } = await this.admin('POST', '/v1/bots', { ...id, ...names })
    assert.equal(status, 200, text)
    return { botId: body.bot_id, token: body.token }
  }

  /** Pushes one update, which must be accepted, and returns its id, or undefined if it was filtered. */
  async push(botId: number, update: object, query = ''): Promise<number | undefined> {
    const path = `/v1/bots/${botId}/updates${query === '' ? '' : `?${query}`}`
    const { status, text, body } = await this.admin('POST', path, update)
    assert.equal(status, 200, text)
    return body.update_id
  }

  /** Ends the server normally and returns its exit code. */
  stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<number | null> {
    return this.#parts.child.stop(signal)
  }

  /** Sends SIGKILL to all processes at the same time and waits until they are gone. */
  kill(): Promise<void> {
    return this.#parts.child.kill()
  }

  /** Sends SIGKILL to the primary and waits until the last process is gone: workers end with their primary. */
  async killPrimary(): Promise<void> {
    await this.#parts.child.stop('SIGKILL')
  }

  /** Waits for the end of the server and returns its exit code. */
  ended(): Promise<number | null> {
    return this.#parts.child.ended()
  }

  /** Starts the server again in the same directory on the same ports, after ending it normally if it still runs. */
  async restart(options: ServerOptions = {}): Promise<Server> {
    await this.stop()
    const { place, start, options: before } = this.#parts
    const botPort = Number(new URL(this.botUrl).port)
    const adminPort = Number(new URL(this.privateUrl).port)
    return start({ ...place, botPort, adminPort }, { ...before, ...options })
  }
}

function neverAgain(): Promise<Server> {
  return Promise.reject(new Error('a server behind other addresses cannot be restarted'))
}

/** The result of getMe for a bot that `register` has created, in the order of its fields. */
export function meOf({ botId }: Pick<RegisteredBot, 'botId'>): object {
  return {
    id: botId,
    is_bot: true,
    first_name: 'Test',
    username: 'test_bot',
    can_join_groups: true,
    can_read_all_group_messages: false,
    supports_inline_queries: false,
    can_connect_to_business: false,
    has_main_web_app: false,
    has_topics_enabled: false,
    allows_users_to_create_topics: false,
    can_manage_bots: false,
    supports_guest_queries: false,
  }
}

/** Sends one request. */
export function send(call: Call): Promise<Answer> {
  const { method, url, headers = {}, body, signal, agent = false } = call
  return new Promise((resolve, reject) => {
    const options = { method, headers, agent, ...(signal === undefined ? {} : { signal }) }
    const outgoing = request(url, options, (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('error', reject)
      response.on('end', () => {
        const text = Buffer.concat(chunks).toString()
        const status = response.statusCode ?? 0
        resolve({ status, headers: response.headers, text, body: jsonOf(text) })
      })
    })
    outgoing.on('error', reject)
    outgoing.end(body)
  })
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
