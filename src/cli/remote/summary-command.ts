/** `postbote summary`: the sums over all bots of the server. */
import { botOperations } from '../../operations/bot-operations.ts'
import type { ResultOf } from '../../operations/operation.ts'
import type { CommandCall } from '../commands/command-call.ts'
import type { ParsedCommand } from '../commands/command-row.ts'
import { ageCell, cell } from './cells.ts'
import { tellMissingShards } from './tell-missing-shards.ts'
import { printResult, tableLines } from './print-result.ts'
import { privateApiOf, remoteOptions } from './private-api-of.ts'

export const summaryCommand: ParsedCommand = {
  kind: 'parsed',
  name: 'summary',
  sentence: 'shows how many bots there are, how many of them are failing, and what is pending',
  arguments: [],
  options: remoteOptions,
  run: show,
}

type Summary = ResultOf<typeof botOperations.getSummary>

async function show(call: CommandCall): Promise<void> {
  const api = await privateApiOf(call)
  const result = await api.call(botOperations.getSummary, {})
  printResult(call, result, summaryLines)
  tellMissingShards(result.value)
}

/** Those of the summary that are shown together, or told as missing. */
const otherFields = new Set(['oldest_age', 'oldest_bot_id', 'oldest_test', 'missing_shards'])

/** Fields that a later server adds are shown, too. */
function summaryLines(summary: Summary): readonly string[] {
  const fields = Object.entries(summary).filter(([field]) => !otherFields.has(field))
  return tableLines({
    head: ['field', 'value'],
    rows: [
      ...fields.map(([field, value]) => [field, valueCell(value)]),
      ['oldest', oldestCell(summary)],
    ],
  })
}

function oldestCell(summary: Summary): string {
  const { oldest_age: age, oldest_bot_id: botId, oldest_test: isTest } = summary
  if (botId === null) return cell(botId)
  return `${ageCell(age)}, of ${isTest === true ? 'the /test/ queue of ' : ''}bot ${botId}`
}

function valueCell(value: unknown): string {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return cell(value)
  return Object.entries(value)
    .map(([name, count]) => `${name} ${cell(count)}`)
    .join(', ')
}
