/**
 * `npm run soak -- --minutes 10 --seed 1 --faults kill,power --report FILE`: injects every kind of fault into a working
 * server, and proves that nothing was lost. test/soak/README.md says which faults occur and what is checked.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import type { DiskKind } from '../fault/power/disk-journal.ts'
import { type FaultKind, faultKinds } from './fault-plan.ts'
import { soakReport } from './soak-report.ts'
import { runSoak, type SoakOptions } from './soak-run.ts'

const usage = `usage: npm run soak -- [options]
  --minutes M        at most so long; default 1, or as long as it takes where faults are counted
  --seed S           of everything that is drawn; default a random one
  --faults LIST      of ${faultKinds.join(',')}; default all
  --kills N          end after so many kills ...
  --power-losses N   ... and power losses
  --disk KIND        ext4 or posix; default both, drawn for each power loss
  --pace MS          from one fault to the next; default 2000
  --rate N           pushes a second; default 60
  --report FILE      a report in Markdown
  --keep             keep the directory of the run; it is kept anyway where a rule was broken
`

const { values } = parseArgs({
  options: {
    minutes: { type: 'string' },
    seed: { type: 'string', default: String(Math.floor(Math.random() * 2 ** 31)) },
    faults: { type: 'string', default: faultKinds.join(',') },
    kills: { type: 'string' },
    'power-losses': { type: 'string' },
    disk: { type: 'string', default: 'ext4,posix' },
    pace: { type: 'string', default: '2000' },
    rate: { type: 'string', default: '60' },
    report: { type: 'string' },
    keep: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})

if (values.help) process.stdout.write(usage)
else await main()

async function main(): Promise<void> {
  const place = mkdtempSync(join(tmpdir(), 'postbote-soak-'))
  const options = optionsFor(place)
  const command = commandOf()
  say(`${command}\n  in ${place}`)
  const result = await runSoak(options)
  const report = soakReport({ command, options, result })
  if (values.report !== undefined) writeFileSync(values.report, report)
  say(`\n${report}`)
  const isBroken = result.violations.length > 0
  if (isBroken) {
    for (const violation of result.violations) say(`BROKEN: ${violation}`)
    say(`ledgers and logs are in ${place}; replay: ${command}`)
  }
  if (!isBroken && !values.keep) rmSync(place, { recursive: true })
  process.exitCode = isBroken ? 1 : 0
}

function optionsFor(place: string): SoakOptions {
  const kills = values.kills === undefined ? {} : { kills: numberOf('kills', values.kills) }
  const losses = values['power-losses']
  const powerLosses = losses === undefined ? {} : { powerLosses: numberOf('power-losses', losses) }
  const isCounted = values.kills !== undefined || losses !== undefined
  return {
    seed: numberOf('seed', values.seed),
    faults: wordsOf('faults', values.faults, faultKinds),
    minutes:
      values.minutes === undefined ? (isCounted ? 1e6 : 1) : numberOf('minutes', values.minutes),
    ...kills,
    ...powerLosses,
    diskKinds: wordsOf<DiskKind>('disk', values.disk, ['ext4', 'posix']),
    paceMs: numberOf('pace', values.pace),
    rate: numberOf('rate', values.rate),
    place,
    log: say,
  }
}

function numberOf(name: string, text: string): number {
  const number = Number(text)
  if (text === '' || !Number.isFinite(number) || number < 0)
    fail(`--${name} expects a number, got ${text}`)
  return number
}

function wordsOf<Word extends FaultKind | DiskKind>(
  name: string,
  text: string,
  known: readonly Word[],
): Word[] {
  return text.split(',').map((each) => {
    const word = known.find((one) => one === each)
    return word ?? fail(`--${name} expects some of ${known.join(',')}, got ${text}`)
  })
}

/** Returns the command that repeats the run, as far as the timing of the machine allows. */
function commandOf(): string {
  const { report: _report, keep: _keep, help: _help, ...given } = values
  const flags = Object.entries(given).map(([name, value]) => `--${name} ${value}`)
  return `npm run soak -- ${flags.join(' ')}`
}

function fail(message: string): never {
  process.stderr.write(`${message}\n${usage}`)
  process.exit(2)
}

function say(line: string): void {
  process.stdout.write(`${line}\n`)
}
