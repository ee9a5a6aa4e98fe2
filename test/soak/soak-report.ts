/** The report of a soak run in Markdown: the faults, what followed from them, and the rules that were broken. */
import type { SoakOptions, SoakResult } from './soak-run.ts'

export function soakReport({
  command,
  options,
  result,
}: {
  readonly command: string
  readonly options: Pick<SoakOptions, 'seed'>
  readonly result: SoakResult
}): string {
  const { tallies, recoveriesMs, serverErrors, violations, durationMs, faults } = result
  const count = (what: string): number => tallies.get(what) ?? 0
  const recoveries = recoveriesMs.toSorted((left, right) => left - right)
  const of = (share: number): string =>
    ((recoveries[Math.floor((recoveries.length - 1) * share)] ?? 0) / 1_000).toFixed(1)
  const accounted = count('acknowledged, accounted for')
  const rows = [...tallies].filter(([what]) => what !== 'violations').toSorted(byName)
  return [
    '# Report of a soak run',
    '',
    `\`${command}\` (seed ${options.seed}), Node ${process.versions.node}, ${process.platform}`,
    '',
    `${faults} faults in ${Math.round(durationMs / 1_000)} s. Of ${count('pushed')} updates pushed, ${accounted} were`,
    `acknowledged and accounted for; **${violations.length === 0 ? 'no rule was broken, 0 were lost' : `rules were broken ${count('violations')} times`}**.`,
    `From a fault (or the first of several) until the server took pushes again: median ${of(0.5)} s, 95 % ${of(0.95)} s,`,
    `longest ${of(1)} s.`,
    '',
    '| what | times |',
    '|---|---|',
    ...rows.map(([what, times]) => `| ${what} | ${times} |`),
    '',
    '| warning or error in the log of the server | times |',
    '|---|---|',
    ...[...serverErrors].toSorted(byName).map(([what, times]) => `| ${what} | ${times} |`),
    '',
    ...violations.map((violation) => `- ${violation.replaceAll('|', '\\|')}`),
    '',
  ].join('\n')
}

function byName([left]: readonly [string, number], [right]: readonly [string, number]): number {
  return left < right ? -1 : 1
}
