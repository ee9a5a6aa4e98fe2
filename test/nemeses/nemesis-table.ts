/** The table of a run with nemeses, in Markdown: how long nothing was acknowledged for some bot, by kind of event. */
import type { Measurement, NemesisEvent } from './nemesis-world.ts'

export interface NemesisReport {
  readonly command: string
  readonly minutes: number
  readonly events: readonly NemesisEvent[]
  readonly measurements: readonly Measurement[]
  readonly totals: Readonly<Record<string, number>>
  /** Counts of warnings and errors, by event. */
  readonly logs: ReadonlyMap<string, number>
  readonly violations: readonly string[]
}

export function nemesisTable(report: NemesisReport): string {
  const { command, minutes, events, measurements, totals, logs, violations } = report
  return [
    '# Report of a cluster soak',
    '',
    `\`${command}\`, Node ${process.versions.node}, ${process.platform}, ${minutes.toFixed(1)} minutes`,
    '',
    'Times are the longest that any bot went without an acknowledgement or a delivery, in ms.',
    '',
    '| event | count | evictions | prototypes | p50 | p95 | max | deliveries p50 | p95 | max |',
    '|---|---|---|---|---|---|---|---|---|---|',
    ...events.flatMap((event) => rowOf(event, measurements)),
    '',
    '| what | times |',
    '|---|---|',
    ...Object.entries(totals).map(([what, times]) => `| ${what} | ${times} |`),
    `| violations | ${violations.length} |`,
    '',
    '| event | warning or error in a log of a node | times |',
    '|---|---|---|',
    ...[...logs]
      .map(([line, times]) => `| ${line} | ${times} |`)
      .toSorted((a, b) => a.localeCompare(b)),
    '',
    ...violations.map((violation) => `- ${violation}`),
    '',
  ].join('\n')
}

function rowOf({ name, expected }: NemesisEvent, all: readonly Measurement[]): readonly string[] {
  const own = all.filter(({ event }) => event === name)
  if (own.length === 0) return []
  const evictions = own.reduce((sum, each) => sum + each.evictions, 0)
  const times = [
    own.map(({ acknowledgementMs }) => acknowledgementMs),
    own.map(({ deliveryMs }) => deliveryMs),
  ].flatMap((ms) => [quantile(ms, 0.5), quantile(ms, 0.95), quantile(ms, 1)])
  return [`| ${[name, own.length, evictions, expected, ...times].join(' | ')} |`]
}

function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.ceil(share * sorted.length) - 1] ?? 0
}
