/**
 * The only file that touches time. Everything else takes a `Clock`, so that a test moves it by hand.
 *
 * Wall time (`nowMs`) is for what is stored or shown; durations are measured on `monotonicMs`, which no
 * administrator and no NTP step can move.
 */

import { monitorEventLoopDelay } from 'node:perf_hooks'

export interface Timer {
  /** Stops the timer; harmless when it has fired or was cancelled before. */
  cancel(): void
}

export interface Clock {
  /** Milliseconds since 1970, as the machine's wall clock has it. */
  nowMs(): number
  /** Milliseconds since some fixed moment, with fractions; never goes backwards. */
  monotonicMs(): number
  /** Calls `fire` once after `delayMs` (clamped to 0 and up). Does not keep the process alive. */
  after(delayMs: number, fire: () => void): Timer
  /** Calls `fire` when the events already waiting have been handled. Cheaper than `after(0)`. */
  soon(fire: () => void): void
}

/** How late the event loop was, as Node has it: in nanoseconds, the time between two looks included. */
export interface DelayHistogram {
  readonly max: number
  percentile(percentile: number): number
  reset(): void
}

/** Looks from now on, every `resolutionMs`, without waking JavaScript. */
export function watchEventLoop(resolutionMs: number): DelayHistogram {
  const histogram = monitorEventLoopDelay({ resolution: resolutionMs })
  histogram.enable()
  return histogram
}

/** What this process, all of its threads, has used of CPUs since its start, in milliseconds. */
export function processCpuMs(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1_000
}

const delayMsMax = 2 ** 31 - 1

/** A class, since every waiting poll has one: an object with a closure takes four times its memory. */
class SystemTimer implements Timer {
  readonly #timeout: NodeJS.Timeout

  constructor(timeout: NodeJS.Timeout) {
    this.#timeout = timeout
  }

  cancel(): void {
    clearTimeout(this.#timeout)
  }
}

export const systemClock: Clock = {
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now(),
  after(delayMs, fire) {
    return new SystemTimer(timeoutAfter(delayMs, fire).unref())
  },
  soon: (fire) => void setImmediate(fire),
}

/** For a program that has nothing else to stay alive for while it waits: its timers keep the process. */
export const waitingClock: Clock = {
  ...systemClock,
  after: (delayMs, fire) => new SystemTimer(timeoutAfter(delayMs, fire)),
}

function timeoutAfter(delayMs: number, fire: () => void): NodeJS.Timeout {
  return setTimeout(fire, Math.min(Math.max(delayMs, 0), delayMsMax))
}

/** Resolves after `delayMs`, or at once when `signal` is aborted; it never rejects. */
export function sleep(clock: Clock, delayMs: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) {
      resolve()
      return
    }
    const timer = clock.after(delayMs, finish)
    signal?.addEventListener('abort', finish, { once: true })
    function finish(): void {
      timer.cancel()
      signal?.removeEventListener('abort', finish)
      resolve()
    }
  })
}

/** Resolves when the events already waiting have been handled: for work that would hold the event loop in one piece. */
export function nextTurn(clock: Pick<Clock, 'soon'>): Promise<void> {
  return new Promise((resolve) => clock.soon(resolve))
}

/** Calls `work` every `periodMs` until cancelled; a slow `work` delays the next call and never overlaps it. */
export function every(clock: Clock, periodMs: number, work: () => void | Promise<void>): Timer {
  let cancelled = false
  let timer = clock.after(periodMs, () => void tick())
  async function tick(): Promise<void> {
    await work()
    if (!cancelled) timer = clock.after(periodMs, () => void tick())
  }
  return {
    cancel() {
      cancelled = true
      timer.cancel()
    },
  }
}
