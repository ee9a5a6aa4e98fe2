/** Prints the result of a command for programs. */
export function printJson(result: object): void {
  process.stdout.write(`${JSON.stringify(result)}\n`)
}
