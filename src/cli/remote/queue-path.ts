import type { CommandCall } from '../command-call.ts'
import { onOff } from '../../config/config-values.ts'
import { botIdArgument } from './bot-id-argument.ts'

export const testOption = {
  name: 'test',
  kind: onOff,
  sentence: "Addresses the bot's /test/ queue.",
} as const

/**
 * Returns the path of a call about a queue of a bot.
 *
 * @param more - the path below `/v1/bots/:id/`
 * @param query - parameters; those without a value are left out
 */
export function queuePath(
  call: CommandCall,
  more: string,
  query: Readonly<Record<string, string | number | undefined>> = {},
): string {
  const given = Object.entries({ ...query, test: call.has(testOption) ? 'true' : undefined })
  const parameters = given.flatMap(([name, value]) =>
    value === undefined ? [] : [`${name}=${encodeURIComponent(value)}`],
  )
  const path = `/v1/bots/${call.need(botIdArgument)}/${more}`
  return parameters.length === 0 ? path : `${path}?${parameters.join('&')}`
}
