/**
 * `./scripts/rolling-upgrade [REF [REPORT]]`: upgrades servers under load from another version to that of this checkout, takes
 * them back, and says whether anything was lost, doubled or refused. The arguments are the folder of the other version, its
 * name and, if the report is to be kept, its file.
 *
 *   directory-upgrade.ts   one server with a data directory: workers are reloaded with the other code, then it is restarted
 *   cluster-upgrade.ts     two nodes with PostgreSQL behind load balancers, one after the other
 *
 * `TEST_UPGRADES=directory` or `cluster` runs one of them.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { markdownTable } from '../../bench/case-table.ts'
import type { EndingTest, TestEnd } from '../support/server/server.ts'
import { upgradeCluster } from './cluster-upgrade.ts'
import { upgradeDirectory } from './directory-upgrade.ts'
import { isClean, type UpgradeOutcome } from './upgrade-load.ts'

const [oldFolder = '', oldName = '', reportFile] = process.argv.slice(2)
const newFolder = fileURLToPath(new URL('../../..', import.meta.url))
const which = process.env['TEST_UPGRADES'] ?? 'directory cluster'

const upgrades: Readonly<Record<string, (t: EndingTest) => Promise<readonly UpgradeOutcome[]>>> = {
  directory: async (t) => [await upgradeDirectory(t, { old: oldFolder, new: newFolder })],
  cluster: (t) => upgradeCluster(t, join(oldFolder, 'dist/src/main.js')),
}

const preface = `# Report of an upgrade and the way back

Each section is written by \`./scripts/rolling-upgrade REF test/nemeses/upgrade-report.md\`, here with Node ${process.versions.node} on ${process.platform}, all processes on one
machine. It begins and ends with the version REF, which its steps call old. \`next\` is this version with the next number, and shows what an upgrade from here is like. Clients push to
16 bots, polling ones and webhooks, singly, with idempotency keys and in streams. None repeats a request before it is counted.

- **failed**: a request without a response, or with any but what was asked: an error, a poll that gets 409, a stream that breaks off, a pair without a result.
- **left**: pairs that were on their way when the server ended their stream between pairs. [Nothing of them is stored](../../docs/use/protocol.md#95-streams), and the next stream begins with them.
- **unknown**: pushes without a key whose connection broke. What was stored of them was received once.
- **restart**: a lone server is down for a moment, so its requests fail, most with a refused connection. They count for no other step, and what was accepted must be received all the same.
- **before 1.0.0**: when such a node ends, it closes connections that are in use, which no later version can mend. Its failures are in the steps in which it is drained.
`

const outcomes: UpgradeOutcome[] = []
for (const [name, upgrade] of Object.entries(upgrades)) {
  if (!which.includes(name)) continue
  const ends: TestEnd[] = []
  try {
    outcomes.push(...(await upgrade({ after: (end) => void ends.push(end) })))
  } finally {
    for (const end of ends.toReversed()) await end()
  }
}
const sections = outcomes.map(sectionOf)
console.log(sections.join('\n'))
if (reportFile !== undefined) writeReport(reportFile, sections)
if (outcomes.every(isClean)) console.log('nothing was lost, doubled or refused')
else process.exitCode = 1

/** Puts sections into a report in place of their earlier versions; those of other upgrades stay. */
function writeReport(file: string, fresh: readonly string[]): void {
  const before = existsSync(file) ? readFileSync(file, 'utf8').split(/^(?=## )/m) : []
  const all = new Map<string, string>()
  for (const section of [...before, ...fresh]) {
    const [heading = ''] = section.split('\n', 1)
    if (heading.startsWith('## ')) all.set(heading, section)
  }
  writeFileSync(file, [preface, ...all.values()].join('\n').replaceAll(/\n{3,}/g, '\n\n'))
}

function sectionOf({ way, steps, violations, ...sums }: UpgradeOutcome): string {
  const rows = steps.map(({ name, requests, failed, left, longestPushMs }) => [
    name,
    ...[requests, failed, left, Math.round(longestPushMs)].map(String),
  ])
  const reasons = steps.flatMap(({ name, failures }) =>
    Array.from(
      failures,
      ([text, { count, firstMs }]) => `${name}: ${count} × ${text}, the first after ${firstMs} ms`,
    ),
  )
  const totals = [sums.accepted, sums.unknown, sums.received, sums.receivedAgain, violations.length]
  return [
    `## ${way}, from ${oldName} and back`,
    '',
    ...markdownTable([
      ['pushes accepted', 'unknown', 'updates received', 'received again', 'lost or wrong'],
      totals.map(String),
    ]),
    '',
    ...markdownTable([['step', 'requests', 'failed', 'left', 'longest push in ms'], ...rows]),
    '',
    ...listOf([...reasons, ...violations]),
  ].join('\n')
}

/** A list in Markdown with an empty line after it; nothing for no lines. */
function listOf(lines: readonly string[]): readonly string[] {
  return lines.length === 0 ? [] : [...lines.map((line) => `- ${line}`), '']
}
