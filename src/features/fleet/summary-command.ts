/** `postbote summary`: the sums over all bots of the server, after one sentence with what needs attention. */
import type { ResultOf } from '../../api/operation.ts'
import type { View } from '../../cli/output/view.ts'
import { ageText } from '../../cli/remote/cells.ts'
import { remoteCommand } from '../../cli/remote/remote-command.ts'
import { resultLines, underSentence } from '../../cli/remote/result-lines.ts'
import { counted, grouped } from '../../kit/text/counted.ts'
import { fleetOperations } from './fleet-operations.ts'

export const summaryCommand = remoteCommand(fleetOperations.getSummary, {
  sentence: 'shows how many bots there are, how many of them are failing, and what is pending',
  lines: (summary, view) =>
    underSentence(
      summarySentence(summary),
      view,
      resultLines(fleetOperations.getSummary, shownSummary(summary, view), view),
    ),
})

type Summary = ResultOf<typeof fleetOperations.getSummary>

function summarySentence(summary: Summary): string {
  const { health, pending, oldest_age: ageS, dead_letters: letters } = summary
  const { healthy: _healthy, ...others } = health
  const troubled = Object.entries(others).filter(([, count]) => count > 0)
  const states = troubled.map(([word, count]) => `${grouped(count)} ${word}`)
  const { conflicts = 0 } = summary
  if (conflicts > 0) states.push(`${grouped(conflicts)} that two clients poll at once`)
  const bots = counted(summary.bots, 'bot')
  const oldest = ageS === null ? '' : `, the oldest for ${ageText(ageS)}`
  return [
    states.length === 0 ? `${bots}, none in trouble` : `${bots}, of them ${states.join(', ')}`,
    `${counted(pending, 'update')} ${pending === 1 ? 'waits' : 'wait'}${oldest}`,
    counted(letters, 'dead letter'),
  ].join('; ')
}

/** At a terminal, a health that no bot has is not shown. */
function shownSummary(summary: Summary, view: View): object {
  if (!view.isTerminal) return summary
  const health = Object.entries(summary.health).filter(([, count]) => count > 0)
  return { ...summary, health: Object.fromEntries(health) }
}
