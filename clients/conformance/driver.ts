/** A driver that runs: it takes one job after the other, and its lines are read. */
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { trustingEnvironment } from './authority.ts'
import type { ConformanceClient } from './conformance-clients.ts'
import type { CallLine, DoneLine, DriverReport, Job, ResultLine, RetryLine } from './job.ts'

type Line = ResultLine | CallLine | RetryLine | DoneLine

/** A job that takes longer is over, and its driver is killed: the suite has to end. */
const jobMsMax = 170_000
/** How often the memory of a driver is looked at. */
const memoryPeriodMs = 100

/** A client speaks to its server alone: it looks for no proxy, and nobody listens here. */
const proxies = Object.fromEntries(
  ['http_proxy', 'https_proxy', 'all_proxy'].flatMap((name) =>
    [name, name.toUpperCase()].map((variable) => [variable, 'http://127.0.0.1:9']),
  ),
)

/** The process of a driver. */
export class Driver {
  readonly #child: ChildProcessWithoutNullStreams
  readonly #ended: Promise<number | null>
  #errorText = ''
  #exitCode: number | null | undefined
  #onLine: (line: Line | undefined) => void = () => undefined

  /** Starts the program of a client. */
  constructor({ command, environment }: ConformanceClient) {
    const [program = '', ...args] = command
    this.#child = spawn(program, args, {
      env: { ...process.env, ...trustingEnvironment, ...proxies, ...environment },
    })
    this.#child.on('error', (error) => (this.#errorText += error.message))
    this.#child.stderr.on('data', (chunk) => (this.#errorText += String(chunk)))
    this.#child.stdin.on('error', () => undefined)
    createInterface({ input: this.#child.stdout }).on('line', (text) => this.#read(text))
    this.#ended = new Promise((resolve) => {
      this.#child.on('close', (code) => {
        this.#exitCode = code
        this.#onLine(undefined)
        resolve(code)
      })
    })
  }

  /**
   * Gives the driver a job and waits until it is done. Call this for one job at a time.
   *
   * @param onResult - Called with each result as it is printed.
   */
  async run(
    job: Job,
    onResult: (line: ResultLine) => void = () => undefined,
  ): Promise<DriverReport> {
    const began = performance.now()
    const results: ResultLine[] = []
    const calls: CallLine[] = []
    const retries: RetryLine['retry'][] = []
    let memoryBytesMax = 0
    const cpuMsBefore = processorMs(this.#child.pid)
    const look = (): void => {
      memoryBytesMax = Math.max(memoryBytesMax, residentBytes(this.#child.pid))
    }
    const memory = setInterval(look, memoryPeriodMs)
    const limit = setTimeout(() => this.#child.kill('SIGKILL'), jobMsMax)
    const done = await new Promise<DoneLine | undefined>((resolve) => {
      this.#onLine = (line) => {
        if (line === undefined || 'done' in line) resolve(line)
        else if ('n' in line) {
          results.push(line)
          onResult(line)
        } else if ('call' in line) calls.push(line)
        else retries.push(line.retry)
      }
      if (this.#exitCode !== undefined) resolve(undefined)
      this.#child.stdin.write(`${JSON.stringify(job)}\n`)
    })
    look()
    clearInterval(memory)
    clearTimeout(limit)
    const elapsedMs = performance.now() - began
    const cpuMs = processorMs(this.#child.pid) - cpuMsBefore
    const errorText = this.#errorText
    const exitCode = this.#exitCode
    return { results, calls, retries, done, exitCode, elapsedMs, cpuMs, memoryBytesMax, errorText }
  }

  /** Ends the input of the driver, waits for its end, and returns its exit code. */
  async close(): Promise<number | null> {
    this.#child.stdin.end()
    const limit = setTimeout(() => this.#child.kill('SIGKILL'), jobMsMax)
    const code = await this.#ended
    clearTimeout(limit)
    return code
  }

  #read(text: string): void {
    const line = lineOf(text)
    if (line === undefined) this.#errorText += `not JSON: ${text.slice(0, 500)}\n`
    else this.#onLine(line)
  }
}

function lineOf(text: string): Line | undefined {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Returns 0 where it is not known: after the end of the process, and without /proc. */
function residentBytes(pid: number | undefined): number {
  try {
    const [, kib = '0'] =
      /VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
    return Number(kib) * 1_024
  } catch {
    return 0
  }
}

/** Returns 0 where it is not known, as above. The kernel counts hundredths of a second. */
function processorMs(pid: number | undefined): number {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
      .replace(/^.*\) /, '')
      .split(' ')
    const [user = 0, system = 0] = fields.slice(11, 13).map(Number)
    return (user + system) * 10
  } catch {
    return 0
  }
}
