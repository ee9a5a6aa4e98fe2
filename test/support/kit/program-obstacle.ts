import { spawnSync } from 'node:child_process'

/** Returns why tests that need a program are skipped; false if it is installed. */
export function programObstacle(program: string): string | false {
  const { error } = spawnSync(program, ['--version'], { stdio: 'ignore' })
  return error === undefined ? false : `${program} is not installed`
}
