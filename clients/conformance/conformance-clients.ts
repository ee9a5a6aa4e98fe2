/** The clients that the suite runs: how each driver is started, and whether this machine can. */
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { buildGoDriver, goDriver } from './go-tool.ts'

/** A client with its driver. */
export interface ConformanceClient {
  /** The language, which names its tests. */
  readonly name: string
  /** The program and its arguments. */
  readonly command: readonly string[]
  /** Environment variables that the program needs besides those of the process. */
  readonly environment: Readonly<Record<string, string>>
  /**
   * Makes what the driver needs before its first run.
   *
   * @returns Why the driver cannot run here; undefined if it can.
   */
  prepare(): string | undefined
}

const root = fileURLToPath(new URL('../../../', import.meta.url))

const all: readonly ConformanceClient[] = [
  {
    name: 'typescript',
    command: [process.execPath, `${root}dist/clients/conformance/typescript-driver.js`],
    environment: {},
    prepare: () => undefined,
  },
  python('python asyncio', []),
  python('python sync', ['--sync']),
  {
    name: 'go',
    command: [goDriver],
    environment: {},
    prepare: () => missing('go', 'version') ?? buildGoDriver(),
  },
]

/** The clients that the suite runs: all, or those whose names begin with CONFORMANCE_CLIENT. */
export const conformanceClients = all.filter(({ name }) =>
  name.startsWith(process.env['CONFORMANCE_CLIENT'] ?? ''),
)

function python(name: string, flags: readonly string[]): ConformanceClient {
  return {
    name,
    command: ['python3', `${root}clients/python/conformance_driver.py`, ...flags],
    // No files of the interpreter in the checkout.
    environment: { PYTHONDONTWRITEBYTECODE: '1' },
    prepare: () => missing('python3', '--version'),
  }
}

/** Returns why a program cannot be started; undefined if it can. */
export function missing(program: string, ...flags: readonly string[]): string | undefined {
  return spawnSync(program, flags).status === 0 ? undefined : `${program} is not installed`
}
