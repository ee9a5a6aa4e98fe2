/** How the commands that call a server print results: for people on lines and in tables, for programs as JSON. */
import type { CommandCall } from '../command-call.ts'
import { jsonOption } from '../json-option.ts'
import { printJsonLine } from '../print-json.ts'
import { harmless, type TableRows, textTable } from '../text-table.ts'

/**
 * Prints a result: with `--json` the JSON of the server, otherwise what `lines` returns for it.
 *
 * @param json - the response of the server
 */
// oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- the type of the server's JSON, which nobody checks
export function printResult<Result>(
  call: CommandCall,
  json: string,
  lines: (result: Result) => readonly string[],
): void {
  if (call.has(jsonOption)) {
    printJsonLine(json)
    return
  }
  const result: Result = JSON.parse(json)
  for (const line of lines(result)) process.stdout.write(`${harmless(line)}\n`)
}

/** Returns a table that fits into the terminal, if there is one. Some terminals say 0 for a width that they do not know. */
export function tableLines(rows: TableRows): readonly string[] {
  const { isTTY, columns } = process.stdout
  return textTable(rows, isTTY && columns > 0 ? columns : Infinity)
}

/** Writes a line about the result for people, which is no part of it. */
export function tell(text: string): void {
  process.stderr.write(`${text}\n`)
}
