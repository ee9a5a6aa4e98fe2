import { spawnSync } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../../../', import.meta.url))
/** What Go builds stays for the next run, which then takes a second. */
const folder = `${root}node_modules/.cache/postbote-go`

/** The program that `buildGoDriver` makes. */
export const goDriver = `${folder}/conformance-driver`

/** Builds the driver of the client for Go. Returns why that failed; undefined if it did not. */
export function buildGoDriver(): string | undefined {
  return goTool(['build', '-o', goDriver, './internal/conformance'])
}

/**
 * Runs the tool of Go in clients/go, without a network and without the caches of the user.
 *
 * @returns What the tool wrote if it failed; undefined if it did not.
 */
export function goTool(args: readonly string[]): string | undefined {
  mkdirSync(folder, { recursive: true })
  const { status, stdout, stderr } = spawnSync('go', args, {
    cwd: `${root}clients/go`,
    encoding: 'utf8',
    env: goEnvironment(),
  })
  return status === 0 ? undefined : `go ${args.join(' ')} failed: ${stdout}${stderr}`
}

/** The variables of a tool of Go without a network and without the caches of the user. */
export function goEnvironment(): NodeJS.ProcessEnv {
  return {
    ...process.env,
    GOFLAGS: '-mod=mod',
    GOPROXY: 'off',
    GOCACHE: `${folder}/cache`,
    GOPATH: `${folder}/path`,
  }
}
