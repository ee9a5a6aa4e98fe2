/**
 * Tells the service manager that started this process what the server does. This is systemd's protocol, which other
 * service managers and container runtimes also speak: datagrams of the form KEY=value to the Unix socket that
 * NOTIFY_SOCKET names (sd_notify(3), sd_watchdog_enabled(3)).
 *
 *   starting -> ready -> reloading -> ready -> ... -> ending
 *
 * From `ready` on it also sends a sign of life every half of WATCHDOG_USEC: if the event loop of the primary stands still,
 * the service manager kills the server. The primary watches the workers (process/primary/watchdog.ts).
 *
 * A server without a service manager, and one whose service manager does not listen any more, runs as usual.
 */
import { type Clock, every } from '../../kit/clock.ts'
import type { Log } from '../../kit/surroundings.ts'
import type { PrimaryPhase } from '../../process/primary/primary.ts'
import { messageOf } from '../../kit/errors.ts'

/** This many notices wait for the service manager. Past that the oldest is dropped, because newer ones replace it. */
export const noticesWaitingMax = 16

/** A notice for which the service manager's queue has no room is sent again after this pause. Chosen: systemd empties it in milliseconds. */
export const noticeRetryMs = 100

export interface ServiceManagerOptions {
  readonly clock: Clock
  readonly log: Log
  /** The environment of the process. What concerns the service manager is removed from it: it is not for the workers. */
  readonly env: Record<string, string | undefined>
  /** The id of this process. */
  readonly pid: number
  /** Returns false if the receiver's queue is full at the moment; throws if nobody listens. */
  readonly send: (address: Buffer, bytes: Buffer) => boolean
}

export class ServiceManager {
  readonly #options: ServiceManagerOptions
  /** undefined without a service manager. */
  readonly #address: Buffer | undefined
  /** The period of signs of life; undefined if nobody waits for them. */
  readonly #signOfLifeMs: number | undefined
  /** Notices for which the service manager's queue had no room, the oldest first. */
  readonly #waiting: string[] = []
  #served = ''
  #isEnding = false
  #hasFailed = false

  constructor(options: ServiceManagerOptions) {
    const { env, log, pid } = options
    this.#options = options
    const socket = env['NOTIFY_SOCKET']
    this.#address = addressOf(socket)
    if (socket !== undefined && this.#address === undefined) {
      log.warn({}, 'NOTIFY_SOCKET: expected a path that begins with / or @; no notices are sent')
    }
    this.#signOfLifeMs = signOfLifeMsOf(env, pid)
    for (const name of ['NOTIFY_SOCKET', 'WATCHDOG_USEC', 'WATCHDOG_PID']) delete env[name]
  }

  starting(): void {
    this.#notify('STATUS=Starting')
  }

  /** @param served - what the server serves, for people */
  ready(served: string): void {
    this.#served = served
    this.#notify(`READY=1\nSTATUS=${served}`)
    if (this.#address === undefined || this.#signOfLifeMs === undefined) return
    this.#notify('WATCHDOG=1')
    every(this.#options.clock, this.#signOfLifeMs, () => {
      // Newer than all that wait, and worth nothing after them.
      if (this.#waiting.length === 0) this.#notify('WATCHDOG=1')
    })
  }

  /** Tells how the server goes on after it was ready. */
  goesOn(phase: PrimaryPhase): void {
    // A reload may be requested while the server still starts, and its end does not make the server ready.
    if (this.#served === '' && phase !== 'ending') return
    switch (phase) {
      case 'reloading': {
        const nowUs = Math.floor(this.#options.clock.machineMs() * 1_000)
        this.#notify(`RELOADING=1\nMONOTONIC_USEC=${nowUs}\nSTATUS=Replacing the workers`)
        return
      }
      case 'reloaded':
        this.#notify(`READY=1\nSTATUS=${this.#served}`)
        return
      case 'reload failed':
        this.#notify(`READY=1\nSTATUS=${this.#served}; the last reload failed, see the log`)
        return
      case 'ending':
        this.#notify('STOPPING=1\nSTATUS=Responding to open requests')
        this.#isEnding = true
        return
      default:
        phase satisfies never
    }
  }

  #notify(notice: string): void {
    const address = this.#address
    // A reload that ends during the end of the server does not make it ready again.
    if (address === undefined || this.#isEnding) return
    this.#waiting.push(notice)
    if (this.#waiting.length > noticesWaitingMax) this.#waiting.shift()
    if (this.#waiting.length === 1) this.#sendWaiting(address)
  }

  /** Sends in order. The queue is full while the service manager itself starts many services. */
  #sendWaiting(address: Buffer): void {
    for (let next = this.#waiting[0]; next !== undefined; next = this.#waiting[0]) {
      if (!this.#send(address, next)) {
        this.#options.clock.after(noticeRetryMs, () => this.#sendWaiting(address))
        return
      }
      this.#waiting.shift()
    }
  }

  /** Returns false if the notice must be sent again. */
  #send(address: Buffer, notice: string): boolean {
    try {
      return this.#options.send(address, Buffer.from(notice))
    } catch (error) {
      if (!this.#hasFailed) {
        const reason = messageOf(error)
        this.#options.log.warn({ error: reason }, 'the service manager cannot be notified')
      }
      this.#hasFailed = true
      return true
    }
  }
}

function addressOf(socket: string | undefined): Buffer | undefined {
  if (socket === undefined || !/^[/@]./s.test(socket)) return undefined
  return Buffer.from(socket.replace(/^@/, '\0'))
}

/** Half of the time after which the service manager would kill the process, as sd_watchdog_enabled(3) recommends. */
function signOfLifeMsOf(env: ServiceManagerOptions['env'], pid: number): number | undefined {
  const watched = env['WATCHDOG_PID']
  if (watched !== undefined && watched !== String(pid)) return undefined
  const limitUs = Number(env['WATCHDOG_USEC'] ?? '')
  return Number.isSafeInteger(limitUs) && limitUs > 0 ? limitUs / 2_000 : undefined
}
