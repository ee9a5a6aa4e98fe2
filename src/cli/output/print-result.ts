/** How commands print results: for people on lines and in tables, for programs as JSON. */
import { counted } from '../../kit/text/counted.ts'
import { visibleJson } from '../../kit/text/visible.ts'
import type { CommandCall } from '../commands/command-call.ts'
import { harmless } from './text-table.ts'
import { foldText } from './width-of.ts'
import { View } from './view.ts'

/**
 * Prints a result: with `--json` the JSON of the server, otherwise what `lines` returns for it.
 *
 * @param result - the response of the server
 */
export function printResult<Value>(
  call: CommandCall,
  { text, value }: { readonly text: string; readonly value: Value },
  lines: (value: Value, view: View) => readonly string[],
): void {
  const view = View.of(call)
  if (view.form === 'json') {
    printJsonLine(text)
    return
  }
  const end = view.form === 'csv' ? '\r\n' : '\n'
  for (const line of lines(value, view)) process.stdout.write(`${harmless(line)}${end}`)
  for (const line of view.texts(view.hints)) tell(line)
}

/** Prints JSON as it is, but for characters that nobody can see, or that could change what the terminal shows. */
export function printJsonLine(json: string): void {
  process.stdout.write(`${visibleJson(json)}\n`)
}

/** Returns a result that was made here, of several responses. */
export function madeResult<Value>(value: Value): {
  readonly text: string
  readonly value: Value
} {
  return { text: JSON.stringify(value), value }
}

/** Writes a line for people about a list that goes on, which programs see in its JSON or by its length. */
export function tellMore(call: CommandCall, text: string): void {
  if (View.of(call).form === 'table') tell(text)
}

/** Writes a sentence about the result for people, which is no part of it. On a terminal, no word of it is broken. */
export function tell(text: string): void {
  const { isTTY, columns } = process.stderr
  const lines = isTTY && columns > 0 ? foldText(harmless(text), columns) : [harmless(text)]
  for (const line of lines) process.stderr.write(`${line}\n`)
}

/** Fields of results that say what a call has not reached, and are told beside the result. */
interface IncompleteResult {
  readonly missing_shards?: readonly number[] | undefined
  readonly unreached_workers?: number | undefined
}

export const incompleteFields: ReadonlySet<string> = new Set<keyof IncompleteResult>([
  'missing_shards',
  'unreached_workers',
])

/** Says what a result does not cover, if there is anything. The command fails if the bots of some shards are missing. */
export function tellIncomplete({
  missing_shards: missing = [],
  unreached_workers: unreached,
}: IncompleteResult): void {
  if (unreached !== undefined) {
    tell(
      `${counted(unreached, 'worker')} did not respond: the change takes effect there within seconds once they do`,
    )
  }
  if (missing.length === 0) return
  tell(`the bots of these shards are missing, because no worker has them: ${missing.join(', ')}`)
  process.exitCode = 1
}
