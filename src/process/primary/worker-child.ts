/**
 * One worker process as the primary sees it: its control calls, the way of connections to it, and its end.
 *
 * `gone` means that the process has exited and its channel was read to the end: only then is it certain which connections
 * it had acknowledged. The channel ends with 'disconnect' or 'close', whichever comes first: Node emits no 'disconnect'
 * while a handle is unacknowledged, and no 'close' if this side closed the channel.
 */
import assert from 'node:assert/strict'
import cluster, { type Worker } from 'node:cluster'
import { closeSync } from 'node:fs'
import { sendDescriptor, descriptorSocketPair } from '../../../native-bindings/descriptor-socket.ts'
import { type Clock, sleep } from '../../kit/clock.ts'
import type { EventLog } from '../event-log.ts'
import { connectionPacketBytesMax, workerStartMs } from '../limits.ts'
import {
  type ConnectionsMessage,
  isMessage,
  type TakenMessage,
} from '../channel/channel-message.ts'
import { ConnectionInbox, inboxDescriptor } from '../channel/connection-inbox.ts'
import { writeConnectionPacket } from '../channel/connection-packet.ts'
import { Control, exposeControl } from '../channel/control.ts'
import type { HandOff, HandOffChannel, WaitingConnection } from './hand-off.ts'
import type { Log } from '../../kit/surroundings.ts'
import type { NativeHandle } from '../../http/native-handle.ts'
import { primaryControl } from '../channel/primary-control.ts'
import type { WorkerControl, WorkerStart } from '../channel/worker-control.ts'

export interface WorkerChildOptions {
  readonly clock: Clock
  readonly workerFile: string
  readonly env: Readonly<Record<string, string>>
  readonly handOff: HandOff
  readonly log: Log
  readonly worker: number
  readonly generation: number
  /** The log that the worker reports to and reads. */
  readonly events: EventLog
}

/** Holds one packet while it is sent; nothing keeps a reference. */
const packet = Buffer.allocUnsafeSlow(connectionPacketBytesMax)

/**
 * SIGUSR1 opens the inspector of Node.js at this address until the worker has a listener for it (cli/serve/refuse-inspector.ts). No
 * machine has an address of this network (RFC 5737), so it opens nowhere. Node.js 20 has no --disable-sigusr1.
 */
const noInspector = process.execArgv.some((flag) => flag.startsWith('--inspect'))
  ? []
  : ['--inspect-port=192.0.2.1:9229']

/**
 * V8 may use 8 MiB for young objects in a worker, twice, where its default is 16 MiB. With 10,000 waiting polls in two
 * workers that is a seventh of all they take. 4 MiB save no more, and a push in a stream takes 1.12 of the CPU time. What the
 * operator sets comes later and wins. V8 takes no code cache that was made with other flags (scripts/bundle.ts).
 */
export const workerFlags: readonly string[] = ['--max-semi-space-size=8']
const nodeOptions = [...workerFlags, process.env['NODE_OPTIONS'] ?? ''].join(' ')

/**
 * The primary waits this long after 'exit' for the end of a worker's channel. It is at its end already, unless a
 * grandchild process holds it open.
 */
const workerChannelEndMs = 1_000

export class WorkerChild implements HandOffChannel {
  readonly generation: number
  readonly control: Control<WorkerControl>
  /** Resolves when the worker receives control calls; calls sent earlier are lost. */
  readonly ready: Promise<void>
  /** Resolves with a description of how the process ended. */
  readonly gone: Promise<string>
  readonly #clock: Clock
  readonly #log: Log
  readonly #worker: number
  readonly #process: Worker['process']
  /** The end to which connections are sent, and a copy of the end that the worker reads. */
  readonly #outbox: number
  readonly #inbox: number
  /** The last connection that was sent, and the last one that the worker was notified of. */
  #sentId = 0
  #announcedId = 0
  #isAnnounced = false
  #isGone = false
  #endSignal: string | undefined

  constructor(options: WorkerChildOptions) {
    const { clock, workerFile, env, handOff } = options
    this.generation = options.generation
    this.#clock = clock
    this.#log = options.log
    this.#worker = options.worker
    const [outbox, inbox] = descriptorSocketPair()
    this.#outbox = outbox
    this.#inbox = inbox
    const stdio = ['inherit', 'inherit', 'inherit', 'ipc', inbox]
    assert(stdio.indexOf(inbox) === inboxDescriptor)
    const execArgv = [...process.execArgv, ...noInspector]
    const how = { serialization: 'advanced', stdio } as const
    cluster.setupPrimary({ exec: workerFile, args: [], execArgv, ...how })
    const worker = cluster.fork({ ...env, NODE_OPTIONS: nodeOptions })
    worker.on('error', () => undefined)
    this.#process = worker.process
    this.control = new Control(this.#process, clock)
    exposeControl(this.#process, primaryControl(options.events))
    this.gone = this.#watchEnd(clock)
    this.ready = new Promise((resolve) => {
      this.#process.on('message', (message: unknown) => {
        if (isMessage(message, 'taken')) this.#taken(handOff, message)
        else if (isMessage(message, 'ready')) resolve()
      })
    })
  }

  get pid(): number {
    return this.#isGone ? -1 : (this.#process.pid ?? -1)
  }

  /** The signal that ended the process; undefined while it lives, and if it exited by itself. */
  get endSignal(): string | undefined {
    return this.#endSignal
  }

  send(id: number, connection: WaitingConnection, handle: NativeHandle): boolean {
    if (this.#isGone) return false
    const { listener, clientAddress, bytes } = connection
    const length = writeConnectionPacket(packet, { id, listener, clientAddress, bytes })
    if (!sendDescriptor(this.#outbox, handle.fd, packet.subarray(0, length))) return false
    this.#sentId = id
    if (!this.#isAnnounced) {
      this.#isAnnounced = true
      this.#clock.soon(this.#announce)
    }
    return true
  }

  withdraw(): readonly number[] {
    if (this.#isGone) return []
    const { connections, lostIds } = new ConnectionInbox(this.#inbox).receive()
    for (const { descriptor } of connections) closeSync(descriptor)
    return [...connections.map(({ id }) => id), ...lostIds]
  }

  /** The worker may have read its inbox before the last connections arrived: then it is notified again. */
  #taken(handOff: HandOff, message: TakenMessage): void {
    handOff.acknowledge(this, message)
    this.#isAnnounced = this.#sentId !== this.#announcedId
    if (this.#isAnnounced) this.#announce()
  }

  /** Notifies the worker once of all connections of this turn of the event loop, and not again before it has replied. */
  readonly #announce = (): void => {
    this.#announcedId = this.#sentId
    const message: ConnectionsMessage = { postbote: 'connections' }
    // Without a channel the worker is dying; after `gone` its connections go to its successor.
    if (this.#process.connected) this.#process.send(message, undefined, undefined, ignore)
  }

  /** Loads what the worker needs before it can get its shards. Rejects if the process ends or takes too long. */
  async prepare(start: WorkerStart): Promise<void> {
    await Promise.race([this.ready, this.#endedEarly(), this.#startedLate()])
    await this.control.call('prepare', [start], workerStartMs)
  }

  /** Returns false if the call failed or took too long, or if the process is gone. */
  async tell(
    name: 'settle' | 'leave' | 'retire' | 'drain' | 'close',
    timeoutMs: number,
  ): Promise<boolean> {
    try {
      await this.control.call(name, [], timeoutMs)
      return true
    } catch (error) {
      this.#log.warn(
        { worker: this.#worker, error: String(error) },
        `worker did not ${name} cleanly`,
      )
      return false
    }
  }

  /** Rejects if the process lives and does not reply within `limitMs`. */
  async ping(limitMs: number): Promise<void> {
    try {
      await this.control.call('ping', [], limitMs)
    } catch (error) {
      if (this.#process.connected) throw error
    }
  }

  /** Closes the channel, upon which the worker exits. */
  disconnect(): void {
    if (this.#process.connected) this.#process.disconnect()
  }

  kill(): void {
    if (!this.#isGone) this.#process.kill('SIGKILL')
  }

  /** Kills the process and waits until it is gone. */
  async end(): Promise<void> {
    this.kill()
    await this.gone
  }

  async #endedEarly(): Promise<never> {
    throw new Error(`the worker ${await this.gone} while it started`)
  }

  async #startedLate(): Promise<never> {
    await sleep(this.#clock, workerStartMs)
    throw new Error(`the worker was not ready after ${workerStartMs} ms`)
  }

  #watchEnd(clock: Clock): Promise<string> {
    return new Promise((resolve) => {
      let how: string | undefined
      let isChannelRead = false
      const settle = (): void => {
        if (how === undefined || !isChannelRead || this.#isGone) return
        this.#isGone = true
        for (const end of [this.#outbox, this.#inbox]) closeSync(end)
        resolve(how)
      }
      const channelRead = (): void => {
        isChannelRead = true
        settle()
      }
      this.#process.once('exit', (code: number | null, signal: string | null) => {
        this.#endSignal = signal ?? undefined
        how = signal === null ? `exited with code ${code}` : `was ended by ${signal}`
        clock.after(workerChannelEndMs, channelRead)
        settle()
      })
      this.#process.once('disconnect', channelRead)
      this.#process.once('close', channelRead)
      this.#process.on('error', (error: Error) => {
        // The process was not created (EAGAIN, ENOMEM); other errors concern single messages.
        if (this.#process.pid !== undefined) return
        how = `could not be forked: ${error.message}`
        channelRead()
      })
    })
  }
}

function ignore(): void {
  // An error means that the channel is closing.
}
