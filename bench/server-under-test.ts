/** The real server: its command, real processes, LevelDB on disk, free loopback ports, and the private API to prepare it. */
import { type ChildProcess, spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { mkdtemp } from 'node:fs/promises'
import { createInterface } from 'node:readline'
import { join } from 'node:path'
import type { CaseContext, CpuUsByProcess } from './contestant.ts'
import type { Metered } from './cpu-meter.ts'
import { type CpuProfile, InspectedProcess } from './inspected-process.ts'
import { until } from './until.ts'
import { cpuUsOf, processTree, proportionalBytesOf, residentBytesOf } from './process-cpu.ts'
import { type ThreadTimes, threadTimes } from './thread-cpu.ts'

const startMsMax = 20_000
const inspectorPortMin = 20_000
const stopMsMax = 15_000
/** Concurrent calls to the private API while the bench prepares. */
const preparingConnections = 16

/** The first id that `registerBots` uses by default. */
export const firstBotId = 1_000_000

export interface RegisteredBot {
  readonly botId: number
  readonly token: string
}

export interface ServerOptions {
  /** PEM of a certificate that webhooks may have in addition to the system's roots. */
  readonly trustFile?: string | undefined
  /** Whether `heapBytes` and `inspected` are available. */
  readonly isInspected?: boolean
  /** The directory of an earlier server whose data is used. */
  readonly directory?: string
  /** Replaces the number of workers of the context. */
  readonly workers?: number
  /** Additional flags of its command line. */
  readonly flags?: readonly string[]
  /** Other processes that work for its clients. Its own processes are then metered as one: `node`. */
  readonly others?: readonly Metered[] | undefined
}

/** Starts a server, which ends with the case. */
export type StartServer = (context: CaseContext, options: ServerOptions) => Promise<ServerUnderTest>

/** Starts one that is alone and has its shards on this machine. */
export const startServer: StartServer = (context, options) =>
  ServerUnderTest.start(context, options)

let serversInspected = 0

interface Call<Body> {
  readonly port: number
  readonly method: string
  readonly path: string
  readonly body: Body
}

export class ServerUnderTest {
  readonly #child: ChildProcess
  readonly #agent = new Agent({ keepAlive: true, maxSockets: preparingConnections })
  readonly #inspected: InspectedProcess[] = []
  readonly #isProfiled: boolean
  readonly #others: readonly Metered[] | undefined
  /** The profiles of all processes, one per profiled work. */
  readonly profiles: CpuProfile[] = []
  readonly botPort: number
  readonly privatePort: number
  readonly adminKey: string
  /** For the next server. */
  readonly directory: string

  private constructor(
    child: ChildProcess,
    ready: {
      readonly bot: number
      readonly private: number
      readonly adminKey: string
      readonly directory: string
      readonly isProfiled: boolean
      readonly others: readonly Metered[] | undefined
    },
  ) {
    this.directory = ready.directory
    this.#isProfiled = ready.isProfiled
    this.#others = ready.others
    this.#child = child
    this.botPort = ready.bot
    this.privatePort = ready.private
    this.adminKey = ready.adminKey
  }

  static async start(context: CaseContext, options: ServerOptions = {}): Promise<ServerUnderTest> {
    const { trustFile, isInspected = context.isProfiled, directory: before } = options
    const { workers = context.workers } = options
    // A case may start more than one server.
    const directory = before ?? join(await mkdtemp(join(context.directory, 'server-')), 'data')
    // Workers inherit the flag, with the ports that follow.
    const nodeFlags = isInspected ? [`--inspect=127.0.0.1:${inspectorPort()}`] : []
    const place = ['--http-ip-address', '127.0.0.1', '--http-port', '0', '--admin-port', '0']
    const rest = ['--dir', directory, '--workers', String(workers), '--local']
    const more = options.flags ?? []
    const command = [...nodeFlags, context.mainFile, 'serve', ...place, ...rest, ...more]
    const child = spawn(process.execPath, command, {
      stdio: ['ignore', 'pipe', isInspected ? 'pipe' : 'inherit'],
      env:
        trustFile === undefined ? process.env : { ...process.env, NODE_EXTRA_CA_CERTS: trustFile },
    })
    const inspectors = isInspected ? inspectorUrls(child) : []
    const { bot, private: own } = await readyLine(child)
    const adminKey = readFileSync(join(directory, 'admin.key'), 'utf8').trim()
    const ready = {
      bot: portOf(bot),
      private: portOf(own),
      adminKey,
      directory,
      isProfiled: context.isProfiled,
      others: options.others,
    }
    const server = new ServerUnderTest(child, ready)
    context.atEnd(() => server.#close())
    const end = (): boolean => child.kill('SIGTERM')
    process.once('exit', end)
    child.once('exit', () => process.off('exit', end))
    if (isInspected) {
      // The last inspector may be reported after the server is ready. The primary has one, too.
      await until(async () => inspectors.length > workers, startMsMax)
      for (const url of inspectors) server.#inspected.push(await InspectedProcess.connect(url))
    }
    return server
  }

  /** The primary comes first; empty unless `isInspected`. */
  get inspected(): readonly InspectedProcess[] {
    return this.#inspected
  }

  /** Ends the server in order; otherwise the end of the case does. */
  close(): Promise<void> {
    return this.#close()
  }

  get #tree(): number[] {
    return processTree(this.#child.pid ?? 0)
  }

  cpuUs(): number {
    return cpuUsOf(this.#tree)
  }

  /** All that works for its clients. */
  get processes(): readonly Metered[] {
    return [this, ...(this.#others ?? [])]
  }

  /** This server, and the other nodes of its cluster. */
  get nodes(): readonly ServerUnderTest[] {
    const others = this.#others ?? []
    return [this, ...others.filter((each) => each instanceof ServerUnderTest)]
  }

  cpuUsByProcess(): CpuUsByProcess {
    if (this.#others !== undefined) return { node: cpuUsOf(this.#tree) }
    return this.#byProcess((pid) => cpuUsOf([pid]))
  }

  threadTimes(): Readonly<Record<string, ThreadTimes>> {
    if (this.#others !== undefined) return { node: threadTimes(this.#tree) }
    return this.#byProcess((pid) => threadTimes([pid]))
  }

  residentBytesByProcess(): Readonly<Record<string, number>> {
    return this.#byProcess((pid) => residentBytesOf([pid]))
  }

  residentBytes(): number {
    return residentBytesOf(this.#tree)
  }

  proportionalBytes(): number {
    return proportionalBytesOf(this.#tree)
  }

  /** Returns the size of the JavaScript heaps of all processes, buffers included, after a garbage collection. */
  async heapBytes(): Promise<number> {
    const sizes = await Promise.all(this.#inspected.map((each) => each.heapBytes()))
    return sizes.reduce((sum, bytes) => sum + bytes, 0)
  }

  /** Records profiles during `work`, if the server was started for that. */
  async profiled<T>(work: () => Promise<T>): Promise<T> {
    if (!this.#isProfiled) return work()
    await Promise.all(this.#inspected.map((each) => each.start()))
    const value = await work()
    this.profiles.push(...(await Promise.all(this.#inspected.map((each) => each.stop()))))
    return value
  }

  async registerBots(count: number, firstId = firstBotId): Promise<readonly RegisteredBot[]> {
    const bots: RegisteredBot[] = []
    let next = 0
    const registerSome = async (): Promise<void> => {
      while (next < count) {
        const botId = firstId + next++
        const { token } = await this.private<{ token: string }>('POST', '/v1/bots', {
          bot_id: botId,
          first_name: 'Bench',
          username: `bench_${botId}_bot`,
        })
        bots.push({ botId, token })
      }
    }
    await Promise.all(Array.from({ length: preparingConnections }, registerSome))
    return bots.toSorted((a, b) => a.botId - b.botId)
  }

  private<T>(method: string, path: string, body?: object): Promise<T> {
    return this.#call({ port: this.privatePort, method, path, body })
  }

  /** Pushes pairs of NDJSON lines, waits until all are durable and returns their ids. */
  async pushPairs(pairs: string): Promise<readonly number[]> {
    const { privatePort: port } = this
    const text = await this.#send({ port, method: 'POST', path: '/v1/updates', body: pairs })
    const lines = text.trimEnd().split('\n')
    return lines.map((line) => {
      const { update_id: id }: { update_id?: number } = JSON.parse(line)
      if (id === undefined) throw new Error(`a push was refused: ${line}`)
      return id
    })
  }

  /** Returns a value of the metrics page; `name` is without its prefix. */
  async gauge(name: string): Promise<number> {
    const { privatePort: port } = this
    const page = await this.#send({ port, method: 'GET', path: '/metrics', body: undefined })
    return Number(new RegExp(`^postbote_${name} (\\d+)$`, 'm').exec(page)?.[1] ?? Number.NaN)
  }

  /** Makes a key of the private API. */
  async makeKey(wanted: object): Promise<string> {
    const call = { port: this.privatePort, method: 'POST', path: '/v1/keys', body: wanted }
    return (await this.#call<{ readonly key: string }>(call)).key
  }

  async botMethod<T>(token: string, method: string, body: object): Promise<T> {
    const path = `/bot${token}/${method}`
    const call = { port: this.botPort, method: 'POST', path, body }
    return (await this.#call<{ result: T }>(call)).result
  }

  async #call<T>(call: Call<object | undefined>): Promise<T> {
    const { body } = call
    const text = body === undefined ? undefined : JSON.stringify(body)
    return JSON.parse(await this.#send({ ...call, body: text }))
  }

  #send(call: Call<string | undefined>): Promise<string> {
    return new Promise((resolve, reject) => {
      const headers = {
        authorization: `Bearer ${this.adminKey}`,
        'content-type': 'application/json',
      }
      const { port, method, path } = call
      const where = { host: '127.0.0.1', port, method, path, headers, agent: this.#agent }
      const outgoing = request(where, (response) => {
        let text = ''
        response.setEncoding('utf8')
        response.on('data', (chunk: string) => (text += chunk))
        response.on('error', reject)
        response.on('end', () => {
          if (response.statusCode === 200) resolve(text)
          else reject(new Error(`${method} answered ${response.statusCode}: ${text}`))
        })
      })
      outgoing.on('error', reject)
      outgoing.end(call.body)
    })
  }

  /** The primary forks its workers in their order. */
  #byProcess<T>(read: (pid: number) => T): Readonly<Record<string, T>> {
    return Object.fromEntries(
      this.#tree.map((pid, index) => [index === 0 ? 'primary' : `worker ${index - 1}`, read(pid)]),
    )
  }

  async #close(): Promise<void> {
    this.#agent.destroy()
    for (const inspected of this.#inspected) inspected.close()
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return
    const exited = new Promise<void>((resolve) => this.#child.once('exit', () => resolve()))
    const force = setTimeout(() => {
      for (const pid of this.#tree) process.kill(pid, 'SIGKILL')
    }, stopMsMax)
    this.#child.kill('SIGTERM')
    await exited
    clearTimeout(force)
  }
}

/**
 * Returns the first of a few ports that are very probably free: they are below those that the system assigns to
 * connections. There may be thousands of connections, so the port after one of those is often in use.
 */
function inspectorPort(): number {
  serversInspected += 1
  return inspectorPortMin + ((process.pid + serversInspected) % 600) * 16
}

/** The array grows as the processes report where their inspectors listen. */
function inspectorUrls(child: ChildProcess): string[] {
  const urls: string[] = []
  if (child.stderr === null) return urls
  createInterface({ input: child.stderr }).on('line', (line) => {
    const [, url] = /^Debugger listening on (ws:\S+)$/.exec(line) ?? []
    if (url !== undefined) urls.push(url)
  })
  return urls
}

interface ReadyLine {
  readonly msg: string
  readonly bot: string
  readonly private: string
}

function readyLine(child: ChildProcess): Promise<ReadyLine> {
  return new Promise((resolve, reject) => {
    const lines: string[] = []
    const fail = (why: string): void => {
      child.kill('SIGKILL')
      reject(new Error(`the server ${why}:\n${lines.join('\n')}`))
    }
    const late = setTimeout(() => fail(`was not ready after ${startMsMax} ms`), startMsMax)
    child.once('exit', (code) => fail(`ended with ${code}`))
    if (child.stdout === null) return fail('has no output')
    // Reading continues, so that the pipe never fills.
    createInterface({ input: child.stdout }).on('line', (line) => {
      if (lines.length < 50) lines.push(line)
      const parsed = line.startsWith('{') ? JSON.parse(line) : undefined
      if (parsed?.msg !== 'ready') return
      clearTimeout(late)
      child.removeAllListeners('exit')
      resolve(parsed)
    })
  })
}

function portOf(address: string): number {
  return Number(address.slice(address.lastIndexOf(':') + 1))
}
