/**
 * The program as the Dockerfile lays it out, for one processor: what its last stage copies, with the packages of production
 * that npm chooses for that processor, and without addons of other systems and the C++ that these were built from.
 */
import { cpSync, mkdirSync, readdirSync, rmSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import type { Architecture } from './architecture.ts'
import { Dockerfile } from './dockerfile.ts'
import { run } from './run.ts'

export interface ProgramOptions {
  /** A built checkout, with the addons of the processor. */
  readonly built: string
  readonly to: string
  readonly architecture: Architecture
}

/** Copies the program into a folder that does not exist yet. */
export function copyProgram({ built, to, architecture }: ProgramOptions): void {
  mkdirSync(to, { recursive: true })
  for (const name of ['package.json', 'package-lock.json', '.npmrc']) copy(built, name, to)
  // The scripts of packages would build what their packages have already.
  const kind = ['--os=linux', `--cpu=${architecture.node}`, '--libc=glibc']
  const quiet = ['--no-fund', '--no-audit', '--loglevel=error']
  run('npm', ['ci', '--omit=dev', '--ignore-scripts', ...kind, ...quiet], { cwd: to })
  for (const name of ['package-lock.json', '.npmrc']) rmSync(join(to, name))
  for (const { source, target } of new Dockerfile(built).copies) {
    if (source !== 'node_modules') copy(built, source, to, target)
  }
  for (const entry of readdirSync(to, { recursive: true, withFileTypes: true })) {
    const isOther = basename(entry.parentPath) === 'prebuilds'
    if (!isOther || entry.name === `linux-${architecture.node}`) continue
    rmSync(join(entry.parentPath, entry.name), { recursive: true })
  }
  // The sources of LevelDB, for machines for which leveldown has no addon.
  rmSync(join(to, 'node_modules/leveldown/deps'), { recursive: true })
}

function copy(from: string, source: string, to: string, target = source): void {
  const place = join(to, target)
  mkdirSync(dirname(place), { recursive: true })
  cpSync(join(from, source), place, { recursive: true, verbatimSymlinks: true })
}
