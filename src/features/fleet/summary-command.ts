/** `postbote summary`: the sums over all bots of the server. */
import { fleetOperations } from './fleet-operations.ts'
import type { ResultOf } from '../../api/operation.ts'
import { ageCell, cell, fieldTable } from '../../cli/remote/cells.ts'
import { tableLines, tellMissingShards } from '../../cli/output/print-result.ts'
import { remoteCommand } from '../../cli/remote/remote-command.ts'

export const summaryCommand = remoteCommand(fleetOperations.getSummary, {
  sentence: 'shows how many bots there are, how many of them are failing, and what is pending',
  lines: summaryLines,
  remark: tellMissingShards,
})

type Summary = ResultOf<typeof fleetOperations.getSummary>

/** Fields that a later server adds are shown, too. */
function summaryLines(summary: Summary): readonly string[] {
  const {
    oldest_age: _age,
    oldest_bot_id: _id,
    oldest_test: _test,
    missing_shards: _shards,
    delivery,
    ...fields
  } = summary
  return tableLines(
    fieldTable({ ...fields, ...deliveryCells(delivery), oldest: oldestCell(summary) }),
  )
}

/** A server of the version before does not say it. */
function deliveryCells(
  delivery: Summary['delivery'] | undefined,
): Readonly<Record<string, string>> {
  const cells = Object.entries(delivery ?? {}).map(([mode, { p50_ms: p50, p99_ms: p99 }]) => [
    `delivery, ${mode}`,
    `p50 ${msCell(p50)}, p99 ${msCell(p99)}`,
  ])
  return Object.fromEntries(cells)
}

function msCell(ms: number | null): string {
  return ms === null ? '-' : `${ms} ms`
}

function oldestCell(summary: Summary): string {
  const { oldest_age: age, oldest_bot_id: botId, oldest_test: isTest } = summary
  if (botId === null) return cell(botId)
  return `${ageCell(age)}, of ${isTest === true ? 'the /test/ queue of ' : ''}bot ${botId}`
}
