/** `postbote bench`: runs the bench of a checkout in a process of its own, which prints its own help. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { entryFiles } from '../../entry-files.ts'
import type { RawCommand } from './command-row.ts'

export const benchCommand: RawCommand = {
  kind: 'raw',
  name: 'bench',
  synopsis: 'bench [options] [case ...]',
  sentence:
    'measures the server beside bare programs that do the same work; only in a checkout, because the package does not have the bench; `bench --help` lists its options and cases',
  options: [],
  printsOwnHelp: true,
  run: (argv) => bench(fileURLToPath(entryFiles.bench), argv),
}

/**
 * Runs the bench. Its exit code becomes that of this process.
 *
 * @param file - the program
 * @throws Error if there is no such file.
 */
export async function bench(file: string, argv: readonly string[]): Promise<void> {
  if (!existsSync(file)) {
    throw new Error('bench: expected a checkout of the sources, because packages do not have it')
  }
  const child = spawn(process.execPath, [file, ...argv], { stdio: 'inherit' })
  // The terminal sends it to both processes, and the bench ends its servers.
  process.on('SIGINT', ignore)
  const [code] = await once(child, 'exit')
  process.off('SIGINT', ignore)
  process.exitCode = typeof code === 'number' ? code : 1
}

function ignore(): void {}
