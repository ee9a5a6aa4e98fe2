/** The clients that the suite runs: how each driver is started, and whether this machine can. */
import { spawnSync } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

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

/** What Go builds stays for the next run, which then takes a second. */
const goFolder = join(root, 'node_modules/.cache/postbote-go')
const goDriver = join(goFolder, 'conformance-driver')

/** All clients. */
export const conformanceClients: readonly ConformanceClient[] = [
  {
    name: 'typescript',
    command: [process.execPath, `${root}dist/clients/conformance/typescript-driver.js`],
    environment: {},
    prepare: () => undefined,
  },
  {
    name: 'go',
    command: [goDriver],
    environment: {},
    prepare: () =>
      missing('go', 'version') ?? go(['build', '-o', goDriver, './internal/conformance']),
  },
]

/**
 * Runs the tool of Go in clients/go, without a network and without the caches of the user.
 *
 * @returns What the tool wrote if it failed; undefined if it did not.
 */
export function go(args: readonly string[]): string | undefined {
  mkdirSync(goFolder, { recursive: true })
  const { status, stdout, stderr } = spawnSync('go', args, {
    cwd: `${root}clients/go`,
    encoding: 'utf8',
    env: {
      ...process.env,
      GOFLAGS: '-mod=mod',
      GOPROXY: 'off',
      GOCACHE: join(goFolder, 'cache'),
      GOPATH: join(goFolder, 'path'),
    },
  })
  return status === 0 ? undefined : `go ${args.join(' ')} failed: ${stdout}${stderr}`
}

/** Returns why a program cannot be started; undefined if it can. */
export function missing(program: string, flag: string): string | undefined {
  return spawnSync(program, [flag]).status === 0 ? undefined : `${program} is not installed`
}
