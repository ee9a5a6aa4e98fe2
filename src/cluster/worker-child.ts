/**
 * One worker process as the primary sees it: its control calls, the way for handles, and its end.
 *
 * `gone` means: exited, and its channel read to the end. Only then it is certain which connections it had
 * acknowledged. The end of the channel is 'disconnect' or 'close', whichever comes: Node emits no 'disconnect'
 * while a handle is unacknowledged, and no 'close' where this side closed the channel.
 */
import { workerChannelEndMs } from '../limits.ts'
import cluster, { type Worker } from 'node:cluster'
import type { Clock } from '../clock.ts'
import { type ConnectionMessage, isMessage } from './channel-message.ts'
import { Control } from './control.ts'
import type { HandOff, HandOffChannel } from './hand-off.ts'
import type { WorkerControl } from './worker.ts'

export interface WorkerChildOptions {
  readonly clock: Clock
  readonly workerFile: string
  readonly env: Readonly<Record<string, string>>
  readonly handOff: HandOff
}

export class WorkerChild implements HandOffChannel {
  readonly control: Control<WorkerControl>
  /** Resolves when the worker listens to control calls; those sent before are lost. */
  readonly ready: Promise<void>
  /** Resolves with a description of how it ended. */
  readonly gone: Promise<string>
  readonly #process: Worker['process']
  #isGone = false

  constructor({ clock, workerFile, env, handOff }: WorkerChildOptions) {
    cluster.setupPrimary({ exec: workerFile, args: [], serialization: 'advanced' })
    const worker = cluster.fork(env)
    worker.on('error', () => undefined)
    this.#process = worker.process
    this.control = new Control(this.#process, clock)
    this.gone = this.#watchEnd(clock)
    this.ready = new Promise((resolve) => {
      this.#process.on('message', (message: unknown) => {
        if (isMessage(message, 'taken')) handOff.acknowledge(message.id)
        else if (isMessage(message, 'ready')) resolve()
      })
    })
    // Node tells its sender that a descriptor was lost on the way, and does not send a raw handle again.
    this.#process.on('internalMessage', (message: { readonly cmd?: unknown }) => {
      if (message.cmd === 'NODE_HANDLE_NACK') handOff.notReceived(this)
    })
  }

  get pid(): number {
    return this.#isGone ? -1 : (this.#process.pid ?? -1)
  }

  send(message: ConnectionMessage, handle: object, failed: (error: Error) => void): void {
    // Without a channel the worker is dying; `gone` gives the connection to its successor.
    if (!this.#process.connected) return
    try {
      const done = (error: Error | null): void => {
        if (error !== null && this.#process.connected) failed(error)
      }
      // The types know sockets and servers only; a native handle is sent as it is (`net.Native` in Node).
      const send: unknown = Reflect.get(this.#process, 'send')
      if (typeof send === 'function')
        Reflect.apply(send, this.#process, [message, handle, {}, done])
    } catch (error) {
      failed(error instanceof Error ? error : new Error(String(error)))
    }
  }

  /** Closing the channel is the sign for a worker to exit. */
  disconnect(): void {
    if (this.#process.connected) this.#process.disconnect()
  }

  kill(): void {
    if (!this.#isGone) this.#process.kill('SIGKILL')
  }

  #watchEnd(clock: Clock): Promise<string> {
    return new Promise((resolve) => {
      let how: string | undefined
      let isChannelRead = false
      const settle = (): void => {
        if (how === undefined || !isChannelRead) return
        this.#isGone = true
        resolve(how)
      }
      const channelRead = (): void => {
        isChannelRead = true
        settle()
      }
      this.#process.once('exit', (code: number | null, signal: string | null) => {
        how = signal === null ? `exited with code ${code}` : `was ended by ${signal}`
        clock.after(workerChannelEndMs, channelRead)
        settle()
      })
      this.#process.once('disconnect', channelRead)
      this.#process.once('close', channelRead)
      this.#process.on('error', (error: Error) => {
        // No process came into being (EAGAIN, ENOMEM); other errors are of single messages.
        if (this.#process.pid !== undefined) return
        how = `could not be forked: ${error.message}`
        channelRead()
      })
    })
  }
}
