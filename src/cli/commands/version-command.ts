/** `postbote version`, which is `postbote --version`, too. */
import { readFileSync } from 'node:fs'
import { entryFiles } from '../../entry-files.ts'
import type { ParsedCommand } from './command-row.ts'

export const versionCommand: ParsedCommand = {
  kind: 'parsed',
  name: 'version',
  sentence: 'prints the version of this program',
  arguments: [],
  options: [],
  run: async () => printVersion(),
}

export function printVersion(): void {
  const { version }: { version: string } = JSON.parse(readFileSync(entryFiles.manifest, 'utf8'))
  process.stdout.write(`${version}\n`)
}
