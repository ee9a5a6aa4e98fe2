/**
 * Runs a scenario with every framework at the same time, each as a subtest. The results are a column of the table in
 * docs/use/frameworks.md.
 *
 *     await testEachFramework(t, {
 *       column: 'polling',
 *       title: 'receives in order',
 *       run: async (each, framework) => {
 *         ...
 *         return 'in order'      // the text for the table
 *       },
 *     })
 *
 * A framework that cannot run is skipped with its reason. The committed table must contain the results of this run.
 */
import assert from 'node:assert/strict'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import type { TestContext } from 'node:test'
import { type Cell, type Column, withColumn } from '../../../scripts/clients-table.ts'
import { type Framework, frameworks } from '../../clients/frameworks.ts'

const page = new URL('../../../../docs/use/frameworks.md', import.meta.url)
const folder = new URL('../../../clients/', import.meta.url)

export interface FrameworkScenario {
  /** Undefined if the table has no column for it. */
  readonly column?: Column
  /** What each framework does; it follows the framework's name in the test's name. */
  readonly title: string
  /** Why a framework does not take part; undefined if it does. A framework that is not installed never does. */
  readonly without?: (framework: Framework) => string | undefined
  /** Resolves with the text for the table. */
  readonly run: (t: TestContext, framework: Framework) => Promise<string | void>
}

export async function testEachFramework(
  t: TestContext,
  scenario: FrameworkScenario,
): Promise<void> {
  const cells = await Promise.all(frameworks.map((each) => testOne(t, scenario, each)))
  const { column } = scenario
  if (column === undefined) return
  mkdirSync(folder, { recursive: true })
  writeFileSync(new URL(`${column}.json`, folder), JSON.stringify(cells))
  if (cells.some(({ result }) => result === 'failed')) return
  await t.test(`docs/use/frameworks.md has the results of the run for ${column}`, () => {
    const committed = readFileSync(page, 'utf8')
    const fresh = withColumn(committed, column, comparable(cells, committed))
    const changed = fresh.split('\n').filter((line) => !committed.includes(`${line}\n`))
    assert(fresh === committed, ['it is not fresh, npm run docs:', ...changed].join('\n'))
  })
}

/** A distribution's version of a framework does not change what the table says about another version. */
function comparable(cells: readonly Cell[], committed: string): Cell[] {
  return cells.map((cell, nth) => {
    const isThere = committed.includes(`| ${cell.framework} | `)
    const isSame = committed.includes(`| ${cell.framework} | ${cell.version} | `)
    const isOther = isThere && !isSame && !frameworks[nth]?.isOfLockFile
    return isOther ? { ...cell, version: undefined, result: 'skipped' } : cell
  })
}

/** The frameworks that take part, for scenarios in which they wait for each other. */
export function takingPart({ without }: Pick<FrameworkScenario, 'without'>): readonly Framework[] {
  return frameworks.filter((each) => each.version !== undefined && without?.(each) === undefined)
}

async function testOne(
  t: TestContext,
  { title, without, run }: FrameworkScenario,
  framework: Framework,
): Promise<Cell> {
  const { name, version, missing } = framework
  const reason = version === undefined ? missing : without?.(framework)
  let cell: Cell = { framework: name, version, missing, result: 'failed', saw: '' }
  if (reason !== undefined) cell = { ...cell, result: 'skipped', saw: reason }
  await t.test(`${name} ${title}`, { skip: reason ?? false }, async (each) => {
    const saw = await run(each, framework)
    cell = { ...cell, result: 'passed', saw: saw ?? '' }
  })
  return cell
}
