/** `postbote push`, `attempts`, `pause`, `resume`, `retry` and `limits`: one queue of a bot. */
import { text as textOf } from 'node:stream/consumers'
import { ConfigError } from '../../config/config.ts'
import { anyText, type Kind, refused } from '../../config/config-values.ts'
import { orderingKeyBytesMax } from '../../limits.ts'
import { deliveriesPerSecondMax, deliveriesPerSecondMin } from '../../operations/limits.ts'
import { updateOperations } from '../../operations/update-operations.ts'
import { webhookOperations } from '../../operations/webhook-operations.ts'
import type { CommandCall } from '../commands/command-call.ts'
import type { ParsedCommand } from '../commands/command-row.ts'
import { botIdArgument } from './bot-id-argument.ts'
import { validationKind } from './bots-commands.ts'
import { cell, timeCell } from './cells.ts'
import { fieldOption } from './field-option.ts'
import { privateApiOf, remoteOptions } from './private-api-of.ts'
import { printResult, tableLines } from './print-result.ts'
import { askedQueue, testOption } from './asked-queue.ts'

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
const ttlOption = fieldOption(updateOperations.pushUpdate, 'ttl', {
  defaultShown: 'by the type of the update',
  sentence: 'Seconds after which the update is not delivered any more.',
})
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
const retriedKeyOption = fieldOption(webhookOperations.retryBot, 'ordering_key', {
  defaultShown: 'all that wait for a retry',
  sentence:
    'Tries only the update of this key, given as it was pushed or as a dead letter shows it.',
})
const attemptsOption = fieldOption(webhookOperations.listAttempts, 'limit', {
  sentence: 'Shows this many attempts at most.',
})

/** Null removes the limit. */
const rateOrNone: Kind<number | null> = {
  expected: `a number from ${deliveriesPerSecondMin} to ${deliveriesPerSecondMax}, or none`,
  placeholder: 'N|none',
  parse(text) {
    if (text === 'none') return null
    const rate = /^\d{1,9}(\.\d{1,9})?$/.test(text) ? Number(text) : -1
    return rate >= deliveriesPerSecondMin && rate <= deliveriesPerSecondMax ? rate : refused
  },
}
const deliveriesOption = {
  name: 'deliveries-per-second',
  kind: rateOrNone,
  defaultShown: 'the limit is shown and not changed',
  sentence:
    'Sends at most this many requests to the webhook in any second, retries included; none removes the limit.',
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
    run: (call) => setPaused(call, true),
  },
  {
    kind: 'parsed',
    name: 'resume',
    sentence: 'continues the deliveries after a pause',
    arguments: [botIdArgument],
    options: [testOption, ...remoteOptions],
    run: (call) => setPaused(call, false),
  },
  {
    kind: 'parsed',
    name: 'retry',
    sentence: 'tries the failed updates of a bot now, as after the repair of its endpoint',
    arguments: [botIdArgument],
    options: [retriedKeyOption, testOption, ...remoteOptions],
    run: retry,
  },
  {
    kind: 'parsed',
    name: 'limits',
    sentence: 'shows the limit of deliveries to the webhook of a bot, or sets or removes it',
    arguments: [botIdArgument],
    options: [deliveriesOption, testOption, ...remoteOptions],
    run: limits,
  },
]

async function push(call: CommandCall): Promise<void> {
  const api = await privateApiOf(call)
  // The server delivers it byte for byte.
  const raw = call.get(updateArgument) ?? (await standardInput())
  const key = call.get(idempotencyKeyOption)
  const asked = askedQueue(call, {
    ordering_key: call.get(orderingKeyOption),
    ttl: call.get(ttlOption),
    validate: call.need(validateOption) === 'none' ? undefined : ('telegram' as const),
  })
  const headers = key === undefined ? {} : { 'idempotency-key': key }
  const result = await api.call(updateOperations.pushUpdate, asked, { raw, headers })
  printResult(call, result, (pushed) => {
    if ('filtered' in pushed) return ['filtered: the bot does not want updates of this type']
    const { update_id: id, duplicate } = pushed
    return [duplicate === true ? `update ${id} was stored before, with this key` : `update ${id}`]
  })
}

async function standardInput(): Promise<string> {
  if (process.stdin.isTTY) {
    throw new ConfigError(['push: expected an update as an argument or on standard input'])
  }
  return textOf(process.stdin)
}

async function attempts(call: CommandCall): Promise<void> {
  const api = await privateApiOf(call)
  const asked = askedQueue(call, { limit: call.get(attemptsOption) })
  printResult(call, await api.call(webhookOperations.listAttempts, asked), ({ attempts: all }) => {
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
  })
}

async function setPaused(call: CommandCall, isPaused: boolean): Promise<void> {
  const api = await privateApiOf(call)
  const { pauseBot, resumeBot } = webhookOperations
  const result = await api.call(isPaused ? pauseBot : resumeBot, askedQueue(call, {}))
  printResult(call, result, ({ paused }) => [
    paused ? `deliveries of ${botOf(call)} are paused` : `deliveries of ${botOf(call)} continue`,
  ])
}

async function retry(call: CommandCall): Promise<void> {
  const api = await privateApiOf(call)
  const asked = askedQueue(call, { ordering_key: call.get(retriedKeyOption) })
  printResult(call, await api.call(webhookOperations.retryBot, asked), ({ retried_keys: keys }) => {
    if (keys === 0) return [`nothing of ${botOf(call)} waits for a retry`]
    return [`${keys === 1 ? '1 key of' : `${keys} keys of`} ${botOf(call)}: tried now`]
  })
}

async function limits(call: CommandCall): Promise<void> {
  const api = await privateApiOf(call)
  const rate = call.get(deliveriesOption)
  const asked = askedQueue(call, {})
  const result =
    rate === undefined
      ? await api.call(webhookOperations.getLimits, asked)
      : await api.call(webhookOperations.setLimits, {
          ...asked,
          body: { deliveries_per_second: rate },
        })
  printResult(call, result, ({ deliveries_per_second: limit }) => [
    limit === null
      ? `deliveries of ${botOf(call)} are not limited`
      : `deliveries of ${botOf(call)} are limited to ${limit} per second`,
  ])
}

function botOf(call: CommandCall): string {
  return `bot ${call.need(botIdArgument)}`
}
