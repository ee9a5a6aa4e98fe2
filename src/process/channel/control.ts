/**
 * Control calls between the primary and a worker, such as prepare, drain and close: Comlink over the process channel.
 * Client requests never use this channel, because it has no back-pressure.
 *
 * This file adds two things to Comlink. A call is rejected when the other process is gone or when the call takes too
 * long; Comlink would leave it pending forever. And errors keep their codes; Comlink carries only name and message.
 * Arguments and results are cloned; `Comlink.proxy` and `transfer` do not work over a process channel.
 */
import assert from 'node:assert/strict'
import { type Endpoint, expose, type Remote, wrap } from 'comlink'
import type { Clock } from '../../kit/clock.ts'
import { type ErrorCode, errorKinds, PostboteError } from '../../kit/errors.ts'
import { controlCallMs } from '../limits.ts'
import { type ControlMessage, isMessage } from './channel-message.ts'

/** The part of `process` and of a child process that control calls need. */
export interface ControlChannel {
  readonly connected?: boolean
  send?(
    message: object,
    handle: undefined,
    options: undefined,
    done: (error: Error | null) => void,
  ): boolean
  on(event: string, listener: (message: unknown) => void): unknown
  off(event: string, listener: (message: unknown) => void): unknown
}

type Call = (name: string, args: readonly unknown[]) => Promise<Outcome>
type Method = (...args: never[]) => Promise<unknown>
type Methods<T> = { readonly [K in keyof T]: Method }

type Outcome = { readonly value: unknown } | { readonly error: CarriedError }

interface CarriedError {
  readonly name: string
  readonly message: string
  readonly stack: string | undefined
  readonly code: string | undefined
  readonly retryAfterS: number | undefined
}

/** Lets the other side call the methods of `api`. */
export function exposeControl<T extends Methods<T>>(channel: ControlChannel, api: T): void {
  const call: Call = (name, args) =>
    carryOutcome(() => {
      const method: unknown = Object.hasOwn(api, name) ? Reflect.get(api, name) : undefined
      if (typeof method !== 'function') throw new Error(`there is no control call ${name}`)
      return Reflect.apply(method, api, args)
    })
  expose(call, endpointOf(channel, { sends: 'answer', receives: 'call' }))
}

/** The calling side. `T` is the interface that the other side exposes. */
export class Control<T extends Methods<T>> {
  readonly #channel: ControlChannel
  readonly #clock: Clock
  readonly #remote: Remote<Call>
  readonly #open = new Set<(error: Error) => void>()

  constructor(channel: ControlChannel, clock: Clock) {
    this.#channel = channel
    this.#clock = clock
    this.#remote = wrap<Call>(endpointOf(channel, { sends: 'call', receives: 'answer' }))
    const lost = (): void => {
      for (const reject of this.#open) reject(processGone())
    }
    // Node emits no 'disconnect' for a child that never received the last handle sent to it, so 'exit' counts, too.
    channel.on('disconnect', lost)
    channel.on('exit', lost)
  }

  async call<K extends keyof T & string>(
    name: K,
    args: Parameters<T[K]>,
    timeoutMs = controlCallMs,
  ): Promise<Awaited<ReturnType<T[K]>>> {
    assert(timeoutMs > 0, 'a control call has time')
    if (this.#channel.connected !== true) throw processGone()
    const bound = this.#bound(name, timeoutMs)
    try {
      const outcome = await Promise.race([this.#remote(name, args), bound.failed])
      if ('error' in outcome) throw reviveError(outcome.error)
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- both sides are typed by `T`
      return outcome.value as Awaited<ReturnType<T[K]>>
    } finally {
      bound.release()
    }
  }

  /** Returns a promise that rejects when the other process is gone or the time is up, until it is released. */
  #bound(name: string, timeoutMs: number): { failed: Promise<never>; release: () => void } {
    const { promise: failed, reject } = withReject()
    const timer = this.#clock.after(timeoutMs, () =>
      reject(new Error(`the control call ${name} took longer than ${timeoutMs} ms`)),
    )
    this.#open.add(reject)
    return {
      failed,
      release: () => {
        timer.cancel()
        this.#open.delete(reject)
      },
    }
  }
}

function withReject(): { promise: Promise<never>; reject: (error: Error) => void } {
  let reject: ((error: Error) => void) | undefined
  const promise = new Promise<never>((_resolve, rejectPromise) => {
    reject = rejectPromise
  })
  return { promise, reject: (error) => reject?.(error) }
}

function processGone(): Error {
  const error = new Error('the process that was called is gone')
  return Object.assign(error, { code: 'PROCESS_GONE' })
}

async function carryOutcome(work: () => unknown): Promise<Outcome> {
  try {
    return { value: await work() }
  } catch (thrown) {
    const error = thrown instanceof Error ? thrown : new Error(String(thrown))
    const code = 'code' in error ? error.code : undefined
    return {
      error: {
        name: error.name,
        message: error.message,
        stack: error.stack,
        code: typeof code === 'string' ? code : undefined,
        retryAfterS: error instanceof PostboteError ? error.retryAfterS : undefined,
      },
    }
  }
}

function reviveError(carried: CarriedError): Error {
  const { name, message, stack, code, retryAfterS } = carried
  const error =
    name === 'PostboteError' && isErrorCode(code)
      ? new PostboteError(code, retryAfterS === undefined ? {} : { retryAfterS })
      : Object.assign(new Error(message), { name }, code === undefined ? {} : { code })
  error.message = message
  if (stack !== undefined) error.stack = stack
  return error
}

function isErrorCode(code: string | undefined): code is ErrorCode {
  return code !== undefined && Object.hasOwn(errorKinds, code)
}

interface Tags {
  readonly sends: ControlMessage['postbote']
  readonly receives: ControlMessage['postbote']
}

/** Comlink's view of the channel: it sends the messages of one direction and receives those of the other. */
function endpointOf(channel: ControlChannel, { sends, receives }: Tags): Endpoint {
  const wrappers = new Map<unknown, (message: unknown) => void>()
  return {
    postMessage(data: unknown) {
      if (channel.connected !== true) return
      const message: ControlMessage = { postbote: sends, data }
      // A failed write needs no handling: the call is rejected when the channel closes.
      channel.send?.(message, undefined, undefined, () => undefined)
    },
    addEventListener(_type, listener) {
      const wrapper = (message: unknown): void => {
        if (!isMessage(message, receives)) return
        const event = new MessageEvent('message', { data: message.data })
        if ('handleEvent' in listener) listener.handleEvent(event)
        else listener(event)
      }
      wrappers.set(listener, wrapper)
      channel.on('message', wrapper)
    },
    removeEventListener(_type, listener) {
      const wrapper = wrappers.get(listener)
      if (wrapper !== undefined) channel.off('message', wrapper)
      wrappers.delete(listener)
    },
  }
}
