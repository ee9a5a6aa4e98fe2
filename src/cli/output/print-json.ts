import { harmlessJson } from './text-table.ts'

/** Prints the result of a command for programs. */
export function printJson(result: object): void {
  printJsonLine(JSON.stringify(result))
}

/** Prints JSON as it is, but for the characters that could change what the terminal shows. */
export function printJsonLine(json: string): void {
  process.stdout.write(`${harmlessJson(json)}\n`)
}
