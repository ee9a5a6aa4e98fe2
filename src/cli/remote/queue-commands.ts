/** `postbote push`, `attempts`, `pause`, `resume` and `retry`: one queue of a bot. */
import { text as textOf } from 'node:stream/consumers'
import { ConfigError } from '../../config/config.ts'
import { anyText, wholeNumber } from '../../config/config-values.ts'
import { orderingKeyBytesMax, ttlSMax, webhookAttemptsKept } from '../../limits.ts'
import type { CommandCall } from '../command-call.ts'
import type { ParsedCommand } from '../command-row.ts'
import { botIdArgument } from './bot-id-argument.ts'
import { validationKind } from './bots-commands.ts'
import { cell, timeCell } from './cells.ts'
import { privateApiOf, remoteOptions } from './private-api-of.ts'
import { printResult, tableLines } from './print-result.ts'
import { queuePath, testOption } from './queue-path.ts'

const updateArgument = {
  name: '[update]',
  kind: anyText,
  sentence:
    'The update without its update_id, as JSON: {"message":{...}}. Without it, standard input is read.',
} as const
const orderingKeyOption = {
  name: 'ordering-key',
  kind: anyText,
  defaultShown: 'derived from the update',
  sentence: `A webhook receives updates with the same key one after the other. It has at most ${orderingKeyBytesMax} bytes.`,
} as const
const ttlOption = {
  name: 'ttl',
  kind: wholeNumber(1, ttlSMax),
  defaultShown: 'by the type of the update',
  sentence: 'Seconds after which the update is not delivered any more.',
} as const
const validateOption = {
  name: 'validate',
  kind: validationKind,
  default: 'none',
  sentence: 'telegram refuses an update that lacks a field that bot frameworks need.',
} as const
const idempotencyKeyOption = {
  name: 'idempotency-key',
  kind: anyText,
  sentence: 'A push that is repeated with this key stores the update once.',
} as const
const retriedKeyOption = {
  name: 'ordering-key',
  kind: anyText,
  defaultShown: 'all that wait for a retry',
  sentence:
    'Tries only the update of this key, given as it was pushed or as a dead letter shows it.',
} as const
const attemptsOption = {
  name: 'limit',
  kind: wholeNumber(1, webhookAttemptsKept),
  default: `${webhookAttemptsKept}`,
  sentence: 'Shows this many attempts at most.',
} as const

export const queueCommands: readonly ParsedCommand[] = [
  {
    kind: 'parsed',
    name: 'push',
    sentence: 'pushes one update, and returns when it is on disk',
    arguments: [botIdArgument, updateArgument],
    options: [
      orderingKeyOption,
      ttlOption,
      idempotencyKeyOption,
      validateOption,
      testOption,
      ...remoteOptions,
    ],
    run: push,
  },
  {
    kind: 'parsed',
    name: 'attempts',
    sentence: 'shows the last attempts to deliver to the webhook of a bot, the newest first',
    arguments: [botIdArgument],
    options: [attemptsOption, testOption, ...remoteOptions],
    run: attempts,
  },
  {
    kind: 'parsed',
    name: 'pause',
    sentence: 'stops deliveries to the webhook of a bot; its updates wait',
    arguments: [botIdArgument],
    options: [testOption, ...remoteOptions],
    run: (call) => setPaused(call, 'pause'),
  },
  {
    kind: 'parsed',
    name: 'resume',
    sentence: 'continues the deliveries after a pause',
    arguments: [botIdArgument],
    options: [testOption, ...remoteOptions],
    run: (call) => setPaused(call, 'resume'),
  },
  {
    kind: 'parsed',
    name: 'retry',
    sentence: 'tries the failed updates of a bot now, as after the repair of its endpoint',
    arguments: [botIdArgument],
    options: [retriedKeyOption, testOption, ...remoteOptions],
    run: retry,
  },
]

interface PushResult {
  readonly update_id?: number
  readonly filtered?: boolean
  readonly duplicate?: boolean
}

async function push(call: CommandCall): Promise<void> {
  const api = await privateApiOf(call)
  const update = call.get(updateArgument) ?? (await standardInput())
  const key = call.get(idempotencyKeyOption)
  const path = queuePath(call, 'updates', {
    ordering_key: call.get(orderingKeyOption),
    ttl: call.get(ttlOption),
    validate: call.need(validateOption) === 'none' ? undefined : 'telegram',
  })
  const response = await api.call({
    method: 'POST',
    path,
    // The server delivers it byte for byte.
    body: Buffer.from(update),
    headers: key === undefined ? {} : { 'idempotency-key': key },
  })
  printResult(call, response, pushLines)
}

function pushLines({ update_id: id, filtered, duplicate }: PushResult): readonly string[] {
  if (filtered === true) return ['filtered: the bot does not want updates of this type']
  return [duplicate === true ? `update ${id} was stored before, with this key` : `update ${id}`]
}

async function standardInput(): Promise<string> {
  if (process.stdin.isTTY) {
    throw new ConfigError(['push: expected an update as an argument or on standard input'])
  }
  return textOf(process.stdin)
}

interface Attempts {
  readonly attempts: readonly {
    readonly time: number
    readonly update_id: number | null
    readonly address: string | null
    readonly status: number | null
    readonly duration_ms: number
    readonly error: string | null
    readonly next_retry: number | null
  }[]
}

async function attempts(call: CommandCall): Promise<void> {
  const api = await privateApiOf(call)
  const path = queuePath(call, 'attempts', { limit: call.get(attemptsOption) })
  printResult(call, await api.call({ method: 'GET', path }), attemptLines)
}

function attemptLines({ attempts: all }: Attempts): readonly string[] {
  if (all.length === 0) return ['no attempts']
  return tableLines({
    head: ['time', 'update_id', 'address', 'status', 'ms', 'next_retry', 'error'],
    rows: all.map((attempt) => [
      timeCell(attempt.time),
      cell(attempt.update_id),
      cell(attempt.address),
      cell(attempt.status),
      cell(attempt.duration_ms),
      timeCell(attempt.next_retry),
      cell(attempt.error),
    ]),
  })
}

async function setPaused(call: CommandCall, action: 'pause' | 'resume'): Promise<void> {
  const api = await privateApiOf(call)
  const response = await api.call({ method: 'POST', path: queuePath(call, action) })
  const bot = `bot ${call.need(botIdArgument)}`
  printResult(call, response, ({ paused }: { readonly paused: boolean }) => [
    paused ? `deliveries of ${bot} are paused` : `deliveries of ${bot} continue`,
  ])
}

async function retry(call: CommandCall): Promise<void> {
  const api = await privateApiOf(call)
  const path = queuePath(call, 'retry', { ordering_key: call.get(retriedKeyOption) })
  const response = await api.call({ method: 'POST', path })
  const bot = `bot ${call.need(botIdArgument)}`
  printResult(call, response, ({ retried_keys: keys }: { readonly retried_keys: number }) => {
    if (keys === 0) return [`nothing of ${bot} waits for a retry`]
    return [`${keys === 1 ? '1 key of' : `${keys} keys of`} ${bot}: tried now`]
  })
}
