/**
 * What a refactoring must not change, as text that a test compares: `./scripts/oracles` writes test/fixtures/oracles/ anew. A
 * commit that changes one of these files says why. Two more oracles exist already: docs/reference/openapi.json, which is
 * generated, and test/fixtures/promised.txt, which only grows.
 */
import { commandTable } from '../src/modules/command-table.ts'
import { helpText } from '../src/cli/commands/help-text.ts'
import { lifeOracle } from './oracle-life.ts'
import { recordsOracle } from './oracle-records.ts'
import { emptyMetricsPage } from './promised-names.ts'

/** Where the oracles are; the compiled scripts are one folder deeper. */
export const oraclesFolder = new URL('../../test/fixtures/oracles/', import.meta.url)

/** For each file, what makes its text. */
export const oracles: Readonly<Record<string, () => string | Promise<string>>> = {
  'help.txt': helpOracle,
  'life.txt': lifeOracle,
  'metrics.txt': emptyMetricsPage,
  'records.txt': recordsOracle,
}

/** The help of the program, then that of each command. */
function helpOracle(): string {
  const all = commandTable.map(
    (row) => `$ postbote ${row.name} --help\n${helpText([row], commandTable)}`,
  )
  return [`$ postbote --help\n${helpText([], commandTable)}`, ...all].join('\n')
}
