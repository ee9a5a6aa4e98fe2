/** A Node process started with --inspect, as far as the bench needs it: its CPU profiler for a while, and its heap. */
import { WebSocket } from 'undici'

export interface CallFrame {
  readonly functionName: string
  readonly url: string
  readonly lineNumber: number
  /** Like the line, counted from 0. */
  readonly columnNumber?: number
}

export interface ProfileNode {
  readonly id: number
  readonly callFrame: CallFrame
  readonly children?: readonly number[]
}

export interface CpuProfile {
  readonly nodes: readonly ProfileNode[]
  readonly samples: readonly number[]
  readonly timeDeltas: readonly number[]
}

const samplingUs = 250
const heapExpression = '(({ heapUsed, external }) => heapUsed + external)(process.memoryUsage())'

interface Reply {
  readonly id?: number
  readonly result?: {
    readonly profile?: CpuProfile
    readonly result?: { readonly value?: unknown }
  }
}

export class InspectedProcess {
  readonly #socket: WebSocket
  readonly #waiting = new Map<number, (reply: Reply) => void>()
  #lastId = 0

  private constructor(socket: WebSocket) {
    this.#socket = socket
    socket.addEventListener('message', (event) => {
      const reply: Reply = JSON.parse(String(event.data))
      if (reply.id !== undefined) this.#waiting.get(reply.id)?.(reply)
    })
  }

  /** `url` is in the form that Node prints: ws://host:port/id. */
  static async connect(url: string): Promise<InspectedProcess> {
    const socket = new WebSocket(url)
    await new Promise<void>((resolve, reject) => {
      socket.addEventListener('open', () => resolve())
      socket.addEventListener('error', () => reject(new Error(`no inspector at ${url}`)))
    })
    const inspected = new InspectedProcess(socket)
    await inspected.#call('Profiler.enable', {})
    await inspected.#call('Profiler.setSamplingInterval', { interval: samplingUs })
    return inspected
  }

  async start(): Promise<void> {
    await this.#call('Profiler.start', {})
  }

  async stop(): Promise<CpuProfile> {
    const { result } = await this.#call('Profiler.stop', {})
    if (result?.profile === undefined) throw new Error('expected a profile')
    return result.profile
  }

  async heapBytes(): Promise<number> {
    await this.#call('HeapProfiler.collectGarbage', {})
    return this.evaluate<number>(heapExpression)
  }

  /** Returns the value of an expression in that process, as JSON. */
  async evaluate<T>(expression: string): Promise<T> {
    const { result } = await this.#call('Runtime.evaluate', { expression, returnByValue: true })
    // oxlint-disable-next-line no-unsafe-type-assertion -- the caller wrote the expression
    return result?.result?.value as T
  }

  close(): void {
    this.#socket.close()
  }

  #call(method: string, params: object): Promise<Reply> {
    const id = ++this.#lastId
    return new Promise((resolve) => {
      this.#waiting.set(id, resolve)
      this.#socket.send(JSON.stringify({ id, method, params }))
    })
  }
}
