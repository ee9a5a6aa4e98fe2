/** The report of runs of kills, in Markdown. */
import type { RelayRun } from './relay-run.ts'
import { boundaries } from './relay-world.ts'

export function relayReport(runs: readonly RelayRun[]): string {
  const kills = runs.flatMap((run) => run.kills)
  const victims = [...new Set(kills.map(({ victim }) => victim))]
  const sum = (of: (run: RelayRun) => number): number =>
    runs.reduce((total, run) => total + of(run), 0)
  const violations = runs.flatMap((run) => run.violations)
  return [
    '# Report of kills of relays',
    '',
    ...runs.map(({ kind, seed, kills: { length }, seconds }) => {
      const command = `npm run relay-soak -- --kind ${kind} --kills ${length} --seed ${seed}`
      return `- \`${command}\`, ${seconds} s`
    }),
    '',
    `${kills.length} kills (SIGKILL; frozen nodes: SIGSTOP until another one has taken over), Node ${process.versions.node}, ${process.platform}. The origin made ${sum(({ made }) => made)} updates;`,
    `${sum(({ received }) => received)} were received, **${verdict(violations)}**.`,
    '',
    `| moment of the kill | ${victims.join(' | ')} |`,
    `|---|${victims.map(() => '---|').join('')}`,
    ...boundaries.map((boundary) => {
      const counts = victims.map(
        (victim) =>
          kills.filter((kill) => kill.boundary === boundary && kill.victim === victim).length,
      )
      return `| ${boundary} | ${counts.join(' | ')} |`
    }),
    '',
    '| what | times |',
    '|---|---|',
    `| received again under the same id, by a reader that had not confirmed it | ${sum(({ receivedAgain }) => receivedAgain)} |`,
    `| a poll of a dead or frozen process that the origin ended, because the next one came | ${sum(({ conflicts }) => conflicts)} |`,
    `| violations | ${violations.length} |`,
    '',
    ...violations.map((violation) => `- ${violation.replaceAll('|', '\\|')}`),
    '',
  ].join('\n')
}

function verdict(violations: readonly string[]): string {
  return violations.length === 0
    ? '0 were lost, 0 doubled, and each chat kept its order'
    : `rules were broken ${violations.length} times`
}
