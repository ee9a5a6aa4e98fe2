/** What the suite and the drivers exchange: a job, and the lines that a driver prints (README.md). */
import type { NewBot, PushItem } from '../typescript/postbote-client.ts'

/** What a driver is asked to do. */
export interface Job {
  readonly client: Readonly<Record<string, string | number | boolean | readonly string[]>>
  readonly stream: { readonly pairsMax?: number; readonly bytesMax?: number }
  readonly mode: Mode
  readonly count: number
  readonly bots: readonly number[]
  readonly text: string
  readonly concurrency: number
  readonly keyPrefix?: string
  readonly options?: PushItem['options']
  readonly newBot?: typeof newBot
  readonly rotation?: typeof rotation
  readonly closeMs?: number
}

/** How a driver pushes. */
export type Mode = 'single' | 'stream' | 'pushAll' | 'calls'

/** An error, as a driver prints it. */
export interface PrintedError {
  readonly code: string
  readonly status?: number
  readonly retryAfterS?: number
  readonly isRetryable: boolean
  readonly isOutcomeUnknown: boolean
}

/** A text that people read; a scenario does not ask for a certain one. */
export type ErrorLine = PrintedError & { readonly message: string }

/** The result of one push. */
export interface ResultLine {
  readonly n: number
  readonly updateId?: number
  readonly isDuplicate?: boolean
  readonly isFiltered?: boolean
  readonly error?: ErrorLine
}

/** The result of one call of mode `calls`. */
export interface CallLine {
  readonly call: string
  readonly result?: Readonly<Record<string, unknown>>
  readonly error?: ErrorLine
}

/** A retry that the client reported. */
export interface RetryLine {
  readonly retry: { readonly code: string; readonly attempt: number; readonly botId?: number }
}

/** The last line. */
export interface DoneLine {
  readonly done: true
  readonly pushMs: number
  readonly inFlightMax: number
}

/** The key of the server. */
export const jobKey = 'conformance-key-0123456789abcdef'

/** The bot that mode `calls` creates, with every field of the call. */
export const newBot: Required<NewBot> = {
  botId: 4711,
  firstName: 'Echo',
  username: 'echo_bot',
  polls: 'take_over',
  token: '4711:given',
}

/** The options with which mode `calls` rotates a token: every field of the call. */
export const rotation = { overlapS: 60, token: '101:given' }

/** Everything that a driver printed, and how it ended. */
export interface DriverReport {
  readonly results: readonly ResultLine[]
  readonly calls: readonly CallLine[]
  readonly retries: readonly RetryLine['retry'][]
  readonly done: DoneLine | undefined
  /** Undefined while the driver runs, as it should after a job. */
  readonly exitCode: number | null | undefined
  /** Milliseconds from the job to the last line. */
  readonly elapsedMs: number
  /** Time of a processor that the driver took for the job, in milliseconds. */
  readonly cpuMs: number
  /** The largest resident memory of the driver that was seen, in bytes. */
  readonly memoryBytesMax: number
  /** All that it wrote to its standard error. */
  readonly errorText: string
}

/** Push `n` of a job. */
export function updateOf({ text }: Pick<Job, 'text'>, n: number) {
  const chat = { id: (n % 7) + 1, type: 'private' }
  return { message: { message_id: n, date: 1_795_259_700, chat, text } }
}
