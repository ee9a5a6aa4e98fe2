/** The machine on which the figures were measured. */
import { execFileSync } from 'node:child_process'
import { cpus, release, totalmem } from 'node:os'

export interface Machine {
  readonly cpu: string
  readonly cpus: number
  readonly memoryGib: number
  readonly kernel: string
  readonly node: string
  /** With a + if the work tree differs from it. */
  readonly commit: string
}

export function thisMachine(): Machine {
  return {
    cpu: cpus()[0]?.model ?? 'unknown',
    cpus: cpus().length,
    memoryGib: Math.round(totalmem() / 2 ** 30),
    kernel: release(),
    node: process.version,
    commit: commit(),
  }
}

function commit(): string {
  try {
    const hash = git('rev-parse', '--short', 'HEAD')
    return git('status', '--porcelain', '--untracked-files=no') === '' ? hash : `${hash}+`
  } catch {
    return 'unknown'
  }
}

function git(...args: readonly string[]): string {
  return execFileSync('git', args, { encoding: 'utf8' }).trim()
}
