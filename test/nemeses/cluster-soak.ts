/**
 * `npm run cluster-soak -- --minutes 60 --seed 1 --report FILE`: lets nodes and databases of a cluster fail in random order,
 * and proves that nothing was lost. test/soak/README.md says which events occur and what is checked.
 */
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { wait } from '../support/server/database.ts'
import type { TestEnd } from '../support/server/server.ts'
import { postgresObstacle } from '../support/server/postgres.ts'
import { Luck } from '../support/simulation/luck.ts'
import { nemesisEvents, patroniEvents } from './nemesis-events.ts'
import { nemesisTable } from './nemesis-table.ts'
import { patroniObstacle } from './patroni-pair.ts'
import { type Measurement, type NemesisEvent, NemesisWorld } from './nemesis-world.ts'

const names = Object.keys(nemesisEvents)
const patroniNames = Object.keys(patroniEvents)
/** Some events begin before the shards are spread over all nodes again. */
const balancedShare = 0.5
/** With --calm. A node that has just started is busy with compiling its own code. */
const calmPauseMs = 4_000

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '5' },
    seed: { type: 'string', default: String(Math.floor(Math.random() * 2 ** 31)) },
    patroni: { type: 'boolean', default: false },
    calm: { type: 'boolean', default: false },
    events: { type: 'string' },
    report: { type: 'string' },
    logs: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
})

const known: ReadonlyMap<string, NemesisEvent> = new Map(
  Object.entries(values.patroni ? patroniEvents : nemesisEvents),
)
const eventNames = values.events ?? [...known.keys()].join(',')

/** A signal ends the run after the event that is in progress, with a report. */
const stopping = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stopping.abort())

if (values.help) {
  say(`usage: npm run cluster-soak -- [options]
  --minutes M     at most so long; default 5
  --seed S        of everything that is drawn; default a random one
  --events LIST   of ${names.join(',')}; default all
  --calm          fewer pushes, and each event some seconds after the shards are spread over all nodes: how long does it
                  take when the machine is not busy?
  --patroni       lets Patroni run the database, with the events ${patroniNames.join(',')}
  --report FILE   a report in Markdown
  --logs DIR      the logs of all nodes, which are otherwise kept only if a rule was broken`)
} else await main()

async function main(): Promise<void> {
  const obstacle = postgresObstacle() ?? (values.patroni ? patroniObstacle() : undefined)
  if (obstacle !== undefined) fail(obstacle)
  const { report, minutes, seed, patroni, calm } = values
  const kind = `${patroni ? ' --patroni' : ''}${calm ? ' --calm' : ''}`
  const command = `npm run cluster-soak -- --minutes ${minutes} --seed ${seed} --events ${eventNames}${kind}`
  say(command)
  const ends: TestEnd[] = []
  let text: string
  try {
    text = await run(command, ends)
  } finally {
    for (const end of ends.toReversed()) await end()
  }
  if (report !== undefined) writeFileSync(report, text)
  say(`\n${text}`)
}

async function run(command: string, ends: TestEnd[]): Promise<string> {
  const seed = Number(values.seed)
  const startMs = performance.now()
  const endMs = startMs + Number(values.minutes) * 60_000
  const luck = new Luck(seed)
  const t = { after: (end: TestEnd) => void ends.push(end) }
  const world = await NemesisWorld.start(t, {
    seed,
    log: say,
    hasPatroni: values.patroni,
    isCalm: values.calm,
  })
  const measurements: Measurement[] = []
  const chosen = eventNames.split(',').map(eventOf)
  const failures: string[] = []
  try {
    await world.balanced()
    let round: NemesisEvent[] = []
    while (performance.now() < endMs && !stopping.signal.aborted) {
      // Each event once, in another order every time.
      if (round.length === 0) round = luck.shuffled(chosen)
      const event = round.pop()
      if (event !== undefined) measurements.push(await world.measure(event))
      if (values.calm || luck.chance(balancedShare)) await world.balanced()
      if (values.calm) await wait(calmPauseMs)
    }
  } catch (error) {
    failures.push(error instanceof Error ? String(error.stack) : 'something was thrown')
  }
  const violations = [...(await world.end()), ...failures]
  if (violations.length > 0 || values.logs !== undefined) keepLogs(world, violations.length > 0)
  return nemesisTable({
    command,
    minutes: (performance.now() - startMs) / 60_000,
    // An event that is named more than once occurs more often.
    events: [...new Set(chosen)],
    measurements,
    totals: world.totals(),
    logs: world.logs.counts,
    violations,
  })
}

function keepLogs(world: NemesisWorld, isBroken: boolean): void {
  const directory = values.logs ?? mkdtempSync(join(tmpdir(), 'postbote-nemeses-'))
  mkdirSync(directory, { recursive: true })
  world.logs.write(directory)
  say(`${isBroken ? 'rules were broken; ' : ''}the logs of the nodes are in ${directory}`)
  if (isBroken) process.exitCode = 1
}

function eventOf(name: string): NemesisEvent {
  return (
    known.get(name) ?? fail(`--events expects some of ${[...known.keys()].join(',')}, got ${name}`)
  )
}

function fail(message: string): never {
  process.stderr.write(`${message}\n`)
  process.exit(2)
}

function say(line: string): void {
  process.stdout.write(`${line}\n`)
}
