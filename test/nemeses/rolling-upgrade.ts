/**
 * `./scripts/rolling-upgrade [REF [REPORT]]`: upgrades servers under load from another version to that of this checkout, takes
 * them back, and says whether anything was lost, doubled or refused. The arguments are the folder of the other version, its
 * name and, if the report is to be kept, its file.
 *
 *   directory-upgrade.ts   one server with a data directory: workers are reloaded with the other code, then it is restarted
 *   cluster-upgrade.ts     two nodes with PostgreSQL behind load balancers, one after the other
 */
import { writeFileSync } from 'node:fs'
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
report()

function report(): void {
  const lines = [
    `# Report of an upgrade and the way back`,
    '',
    `\`./scripts/rolling-upgrade ${oldName}\`, Node ${process.versions.node}, ${process.platform}`,
    '',
    ...outcomes.flatMap(sectionOf),
  ]
  const text = lines.join('\n')
  console.log(text)
  if (reportFile !== undefined) writeFileSync(reportFile, text)
  if (outcomes.every(isClean)) console.log('nothing was lost, doubled or refused')
  else process.exitCode = 1
}

function sectionOf({ way, steps, violations, ...sums }: UpgradeOutcome): readonly string[] {
  const rows = steps.map(({ name, requests, failed, left, longestPushMs }) => [
    name,
    ...[requests, failed, left, Math.round(longestPushMs)].map(String),
  ])
  const reasons = steps.flatMap(({ name, failures }) =>
    Array.from(
      failures,
      ([text, { count, firstMs }]) => `${name}: ${count} times ${text}, first after ${firstMs} ms`,
    ),
  )
  return [
    `## ${way[0]?.toUpperCase()}${way.slice(1)}`,
    '',
    `Pushes accepted: ${sums.accepted}, unknown: ${sums.unknown}; updates received: ${sums.received}, again: ${sums.receivedAgain}; lost or wrong: ${violations.length}.`,
    '',
    ...markdownTable([['step', 'requests', 'failed', 'sent again', 'longest push in ms'], ...rows]),
    '',
    ...listOf([...reasons, ...violations]),
  ]
}

/** A list in Markdown with an empty line after it; nothing for no lines. */
function listOf(lines: readonly string[]): readonly string[] {
  return lines.length === 0 ? [] : [...lines.map((line) => `- ${line}`), '']
}
