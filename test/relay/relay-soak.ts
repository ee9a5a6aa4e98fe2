/**
 * `npm run relay-soak -- --kind server --kills 50 --seed 1`: kills what relays from a fake origin at every boundary, and proves
 * that nothing was lost, doubled or put out of order. test/soak/README.md says what is done.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import type { TestEnd } from '../support/server/server.ts'
import { postgresObstacle } from '../support/server/postgres.ts'
import { relayReport } from './relay-report.ts'
import { type RelayRun, runRelayKills } from './relay-run.ts'

const { values } = parseArgs({
  options: {
    kind: { type: 'string', default: 'server' },
    kills: { type: 'string', default: '50' },
    minutes: { type: 'string', default: 'Infinity' },
    seed: { type: 'string', default: String(Math.floor(Math.random() * 2 ** 31)) },
    results: { type: 'string' },
    report: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
})

if (values.help) {
  say(`usage: npm run relay-soak -- [options]
  --kind KIND     server (workers, the whole server, a power loss) or nodes (of a cluster on PostgreSQL); default server
  --kills N       default 50
  --minutes M     no kill begins later
  --seed S        of everything that is drawn; default a random one
  --results FILE  adds the run to those in this file
  --report FILE   a report of all of them in Markdown`)
} else await main()

async function main(): Promise<void> {
  const { kind, results, report } = values
  if (kind !== 'server' && kind !== 'nodes') fail('--kind expects server or nodes')
  const obstacle = kind === 'nodes' ? postgresObstacle() : undefined
  if (obstacle !== undefined) fail(obstacle)
  const ends: TestEnd[] = []
  const t = { after: (end: TestEnd) => void ends.push(end) }
  const options = {
    kind,
    kills: Number(values.kills),
    minutes: Number(values.minutes),
    seed: Number(values.seed),
    log: say,
  } as const
  let run: RelayRun
  try {
    run = await runRelayKills(t, options)
  } finally {
    // In the order of a test of node:test.
    for (const end of ends) await end()
  }
  const before: readonly RelayRun[] =
    results !== undefined && existsSync(results) ? JSON.parse(readFileSync(results, 'utf8')) : []
  const text = relayReport([...before, run])
  if (results !== undefined) writeFileSync(results, JSON.stringify([...before, run]))
  if (report !== undefined) writeFileSync(report, text)
  say(`\n${text}`)
  if (run.violations.length > 0) process.exitCode = 1
}

function fail(message: string): never {
  process.stderr.write(`${message}\n`)
  process.exit(2)
}

function say(line: string): void {
  process.stdout.write(`${line}\n`)
}
