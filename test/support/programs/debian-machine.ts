/** The Debian with systemd, in a container of systemd-nspawn, in which scripts/test-debian tests the packages of a release. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { until } from '../kit/until.ts'
import { childrenOf } from '../kit/processes-below.ts'

/** Its folder outside of it. */
export const debian = process.env['POSTBOTE_DEBIAN'] ?? ''
const nspawn = Number(process.env['POSTBOTE_DEBIAN_PID'])

export const noDebian = debian === '' && 'needs the Debian that `scripts/test-debian` makes'

export interface Outcome {
  readonly status: number | null
  /** What the program printed on both streams. */
  readonly output: string
}

/** Waits until systemd has started everything. */
export async function booted(): Promise<void> {
  await until(isRunning, 60_000)
}

function isRunning(): boolean {
  if (childrenOf(nspawn).length === 0) return false
  return attempt('systemctl', 'is-system-running').status === 0
}

/** Runs a program as root in there. */
export function attempt(...command: readonly string[]): Outcome {
  const [leader = 0] = childrenOf(nspawn)
  const env = { PATH: '/usr/sbin:/usr/bin', DEBIAN_FRONTEND: 'noninteractive', LC_ALL: 'C.UTF-8' }
  const args = ['--target', `${leader}`, '--all', '--', ...command]
  const { status, stdout, stderr } = spawnSync('/usr/bin/nsenter', args, { encoding: 'utf8', env })
  return { status, output: (stdout + stderr).trim() }
}

/** Runs a program that has to succeed as root in there, and returns what it prints. */
export function inDebian(...command: readonly string[]): string {
  const { status, output } = attempt(...command)
  assert.equal(status, 0, `${command.join(' ')}: ${output}`)
  return output
}
