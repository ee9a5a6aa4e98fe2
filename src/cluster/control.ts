/**
 * Calls between the primary and a worker: Comlink over the process channel, for control only (start, drain,
 * close). Requests of clients never go this way: calls queue behind a handle in flight, and there is no
 * back-pressure.
 *
 * What is added to Comlink here: a call is rejected when the other process is gone and when it takes too long
 * (Comlink would leave it pending for ever), and errors keep their codes (Comlink carries name and message). Arguments
 * and results are cloned; `Comlink.proxy` and `transfer` do not work over a process channel.
 */
import { type Endpoint, expose, type Remote, wrap } from 'comlink'
import type { Clock } from '../clock.ts'
import { type ErrorCode, errorKinds, PostboteError } from '../errors.ts'
import { controlCallMs } from '../limits.ts'

/** The part of `process` and of a child process that control needs. */
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

type Methods<T> = {
  [K in keyof T]: T[K] extends (...args: infer A) => Promise<infer R>
    ? (...args: A) => Promise<R>
    : never
}

interface CarriedError {
  readonly name: string
  readonly message: string
  readonly stack: string | undefined
  readonly code: string | undefined
  readonly retryAfterS: number | undefined
}

type Outcome = { readonly value: unknown } | { readonly error: CarriedError }

/** Lets the other side call the methods of `api`. */
export function exposeControl<T extends object>(channel: ControlChannel, api: Methods<T>): void {
  const carrying: Record<string, (...args: unknown[]) => Promise<Outcome>> = {}
  for (const [name, method] of Object.entries(api) as [string, Method][]) {
    carrying[name] = (...args) => carryOutcome(() => method.apply(api, args))
  }
  expose(carrying, endpointOf(channel, { sends: 'answer', receives: 'call' }))
}

export class Control<T extends object> {
  readonly #channel: ControlChannel
  readonly #clock: Clock
  readonly #remote: Remote<Record<string, (...args: unknown[]) => Promise<Outcome>>>
  readonly #open = new Set<(error: Error) => void>()

  constructor(channel: ControlChannel, clock: Clock) {
    this.#channel = channel
    this.#clock = clock
    this.#remote = wrap(endpointOf(channel, { sends: 'call', receives: 'answer' }))
    const lost = (): void => this.#rejectOpen()
    // A child whose last handle was never received emits no 'disconnect', hence 'exit' too.
    channel.on('disconnect', lost)
    channel.on('exit', lost)
  }

  call<K extends keyof Methods<T> & string>(
    name: K,
    args: Parameters<Methods<T>[K]>,
    timeoutMs = controlCallMs,
  ): Promise<Awaited<ReturnType<Methods<T>[K]>>> {
    return new Promise((resolve, reject) => {
      if (this.#channel.connected !== true) {
        reject(processGone(name))
        return
      }
      const settle = (error?: Error): void => {
        timer.cancel()
        this.#open.delete(settle)
        if (error !== undefined) reject(error)
      }
      const timer = this.#clock.after(timeoutMs, () =>
        settle(new Error(`the control call ${name} took longer than ${timeoutMs} ms`)),
      )
      this.#open.add(settle)
      const method = this.#remote[name] as unknown as (...args: unknown[]) => Promise<Outcome>
      method(...args).then(
        (outcome) => {
          settle('error' in outcome ? reviveError(outcome.error) : undefined)
          if ('value' in outcome) resolve(outcome.value as Awaited<ReturnType<Methods<T>[K]>>)
        },
        (error: unknown) => settle(error instanceof Error ? error : new Error(String(error))),
      )
    })
  }

  #rejectOpen(): void {
    for (const settle of this.#open) settle(processGone('open'))
  }
}

type Method = (...args: unknown[]) => Promise<unknown>

function processGone(name: string): Error {
  return Object.assign(new Error(`the control call ${name} failed: the other process is gone`), {
    code: 'PROCESS_GONE',
  })
}

async function carryOutcome(work: () => Promise<unknown>): Promise<Outcome> {
  try {
    return { value: await work() }
  } catch (thrown) {
    const error = thrown instanceof Error ? thrown : new Error(String(thrown))
    const { code } = error as NodeJS.ErrnoException
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
      : Object.assign(new Error(message), { name, ...(code === undefined ? undefined : { code }) })
  error.message = message
  if (stack !== undefined) error.stack = stack
  return error
}

function isErrorCode(code: string | undefined): code is ErrorCode {
  return code !== undefined && Object.hasOwn(errorKinds, code)
}

interface Tags {
  readonly sends: 'call' | 'answer'
  readonly receives: 'call' | 'answer'
}

/** Both directions and the hand-offs share one channel, so every message is tagged with what it is. */
function endpointOf(channel: ControlChannel, { sends, receives }: Tags): Endpoint {
  const wrappers = new Map<unknown, (message: unknown) => void>()
  return {
    postMessage(data: unknown) {
      if (channel.connected !== true) return
      // A failed write needs no word: the call is rejected when the channel closes.
      channel.send?.({ postbote: sends, data }, undefined, undefined, () => undefined)
    },
    addEventListener(_type, listener) {
      const wrapper = (message: unknown): void => {
        if (!isTagged(message, receives)) return
        const event = { data: message.data } as MessageEvent
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

function isTagged(message: unknown, tag: string): message is { readonly data: unknown } {
  return (
    typeof message === 'object' &&
    message !== null &&
    (message as { postbote?: unknown }).postbote === tag
  )
}
