/** Programs that a release runs, one after the other. */
import { execFileSync } from 'node:child_process'

export interface RunOptions {
  readonly cwd?: string
  readonly env?: Readonly<Record<string, string>>
}

/** Returns what a program prints; throws if it fails. Its complaints go to standard error. */
export function run(program: string, args: readonly string[], options: RunOptions = {}): string {
  return execFileSync(program, args, {
    cwd: options.cwd,
    env: { ...process.env, ...options.env },
    encoding: 'utf8',
    maxBuffer: 64 * 1024 * 1024,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
}
