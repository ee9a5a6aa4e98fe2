import { onOff } from '../../config/config-values.ts'
import type { CommandCall } from '../commands/command-call.ts'
import { botIdArgument } from './bot-id-argument.ts'

export const testOption = {
  name: 'test',
  kind: onOff,
  sentence: "Addresses the bot's /test/ queue.",
} as const

/**
 * Returns the input of a call about the queue that a command names.
 *
 * @param query - other parameters; those without a value are left out
 */
export function askedQueue<Query extends object>(
  call: CommandCall,
  query: Query,
): { readonly id: number; readonly query: Query & { readonly test: boolean } } {
  return { id: call.need(botIdArgument), query: { ...query, test: call.has(testOption) } }
}
