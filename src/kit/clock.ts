/**
 * The `Clock` port, and the only file that reads the time or sets timers. All other code takes a `Clock`, so that
 * tests can control time.
 *
 * Stored or displayed times use wall time (`nowMs`). Durations use `monotonicMs`, which neither an administrator nor
 * NTP can change.
 */
import { monitorEventLoopDelay } from 'node:perf_hooks'

/** A pending call of `Clock.after` or `every`. */
export interface Timer {
  /** Stops the timer. Has no effect if the timer has fired or was already canceled. */
  cancel(): void
}

/** The source of time and timers. `systemClock` is the real one; tests use a `FakeClock`. */
export interface Clock {
  /** Returns the machine's wall-clock time in milliseconds since 1970. */
  nowMs(): number
  /** Returns milliseconds since an arbitrary fixed moment, with fractions. Never goes backward. */
  monotonicMs(): number
  /**
   * Returns milliseconds of the monotonic clock that all processes of this machine share, with fractions. Slower than
   * `monotonicMs`.
   */
  machineMs(): number
  /**
   * Calls `fire` once after `delayMs` milliseconds. The delay is clamped to 0 to 2^31 - 1. Whether a pending timer
   * keeps the process alive depends on the clock: with `systemClock` it does not.
   */
  after(delayMs: number, fire: () => void): Timer
  /** Calls `fire` after the events that are already waiting have been handled. Costs less than `after(0)`. */
  soon(fire: () => void): void
}

/** Event loop delays as Node.js measures them, in nanoseconds. They include the sampling interval. */
export interface DelayHistogram {
  readonly max: number
  percentile(percentile: number): number
  reset(): void
}

/**
 * Starts to measure event loop delays without running JavaScript for each sample.
 *
 * @param resolutionMs - sampling interval in milliseconds.
 * @returns the histogram, which keeps filling until the process ends.
 */
export function watchEventLoop(resolutionMs: number): DelayHistogram {
  const histogram = monitorEventLoopDelay({ resolution: resolutionMs })
  histogram.enable()
  return histogram
}

/**
 * Returns a wall-clock time as people read it, in UTC and without fractions: `2026-11-23 08:15:00Z`.
 *
 * @param timeMs - milliseconds since 1970
 */
export function utcText(timeMs: number): string {
  return new Date(timeMs).toISOString().replace(/T(.{8})\.\d{3}Z$/, ' $1Z')
}

/**
 * Returns a wall-clock time as programs read it, in UTC: `2026-11-23T08:15:00Z`, with milliseconds if it has some.
 *
 * @param timeMs - milliseconds since 1970
 */
export function isoText(timeMs: number): string {
  return new Date(timeMs).toISOString().replace('.000Z', 'Z')
}

/** Returns the wall time of a year, a month from 0 on, a day, hours, minutes and seconds in UTC. */
export function utcMs(of: readonly [number, number, number, ...number[]]): number {
  return Date.UTC(...of)
}

/** Returns the time that a certificate names, such as `Jan  2 03:04:05 2030 GMT`, in milliseconds since 1970. */
export function namedMs(text: string): number {
  return Date.parse(text)
}

/**
 * Returns the CPU time in milliseconds, user plus system, that all threads of this process have used since it
 * started.
 */
export function processCpuMs(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1_000
}

const delayMsMax = 2 ** 31 - 1

/** A class, because every waiting poll has a timer: an object with a closure would take four times the memory. */
class SystemTimer implements Timer {
  readonly #timeout: NodeJS.Timeout

  constructor(timeout: NodeJS.Timeout) {
    this.#timeout = timeout
  }

  cancel(): void {
    clearTimeout(this.#timeout)
  }
}

/** The real clock. Its timers do not keep the process alive. */
export const systemClock: Clock = {
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now(),
  machineMs() {
    const [seconds, nanoseconds] = process.hrtime()
    return seconds * 1_000 + nanoseconds / 1_000_000
  },
  after(delayMs, fire) {
    return new SystemTimer(timeoutAfter(delayMs, fire).unref())
  },
  soon: (fire) => void setImmediate(fire),
}

/**
 * The real clock for a program that has nothing else to keep it alive while it waits: its timers keep the process
 * alive.
 */
export const waitingClock: Clock = {
  ...systemClock,
  after: (delayMs, fire) => new SystemTimer(timeoutAfter(delayMs, fire)),
}

function timeoutAfter(delayMs: number, fire: () => void): NodeJS.Timeout {
  return setTimeout(fire, Math.min(Math.max(delayMs, 0), delayMsMax))
}

/**
 * Waits. Never rejects.
 *
 * @param delayMs - in milliseconds.
 * @param signal - resolves the promise immediately when it is aborted.
 */
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

/**
 * Resolves after the events that are already waiting have been handled. Use it to split work that would otherwise
 * block the event loop.
 */
export function nextTurn(clock: Pick<Clock, 'soon'>): Promise<void> {
  return new Promise((resolve) => clock.soon(resolve))
}

/**
 * Calls `work` repeatedly. The next period starts only after `work` has finished, so a slow call delays the next one
 * and calls never overlap.
 *
 * @param periodMs - pause before each call in milliseconds.
 * @returns a timer that ends the repetition.
 */
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
