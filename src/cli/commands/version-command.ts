/** `postbote version` says what runs, for a person; `postbote --version` is the number alone, for programs. */
import { readFileSync } from 'node:fs'
import { entryFiles } from '../../entry-files.ts'
import type { ParsedCommand } from './command-row.ts'

export const versionCommand: ParsedCommand = {
  kind: 'parsed',
  name: 'version',
  sentence: 'prints the version of this program, that of Node.js, and the platform',
  arguments: [],
  options: [],
  run: async () => {
    const { version: node, platform, arch } = process
    process.stdout.write(
      `postbote ${versionNumber()} (Node.js ${node.slice(1)}, ${platform} ${arch})\n`,
    )
  },
}

export function printVersion(): void {
  process.stdout.write(`${versionNumber()}\n`)
}

function versionNumber(): string {
  const { version }: { version: string } = JSON.parse(readFileSync(entryFiles.manifest, 'utf8'))
  return version
}
