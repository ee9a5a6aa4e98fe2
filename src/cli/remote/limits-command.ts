/** `postbote limits`: shows, sets and removes the limit of deliveries of a queue. */
import { type Kind, refused } from '../../config/config-values.ts'
import { deliveriesPerSecondMax, deliveriesPerSecondMin } from '../../operations/limits.ts'
import type { CommandCall } from '../command-call.ts'
import type { ParsedCommand } from '../command-row.ts'
import { botIdArgument } from './bot-id-argument.ts'
import { printResult } from './print-result.ts'
import { privateApiOf, remoteOptions } from './private-api-of.ts'
import { queuePath, testOption } from './queue-path.ts'

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

export const limitsCommand: ParsedCommand = {
  kind: 'parsed',
  name: 'limits',
  sentence: 'shows the limit of deliveries to the webhook of a bot, or sets or removes it',
  arguments: [botIdArgument],
  options: [deliveriesOption, testOption, ...remoteOptions],
  run: limits,
}

interface Limits {
  readonly deliveries_per_second: number | null
}

async function limits(call: CommandCall): Promise<void> {
  const api = await privateApiOf(call)
  const rate = call.get(deliveriesOption)
  const path = queuePath(call, 'limits')
  const response =
    rate === undefined
      ? await api.call({ method: 'GET', path })
      : await api.call({ method: 'PUT', path, body: { deliveries_per_second: rate } })
  const bot = `bot ${call.need(botIdArgument)}`
  printResult(call, response, ({ deliveries_per_second: limit }: Limits) => [
    limit === null
      ? `deliveries of ${bot} are not limited`
      : `deliveries of ${bot} are limited to ${limit} per second`,
  ])
}
