/** helm, which scripts/install-test-tools brings, for one chart. It needs no cluster for what it does here. */
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { programObstacle } from '../kit/program-obstacle.ts'

interface Release {
  readonly Name: string
  readonly Namespace: string
}

/** Where scripts/install-helm puts it. */
const brought = join(tmpdir(), 'postbote-helm/helm')
const program = existsSync(brought) ? brought : 'helm'

/** Why there is no helm; false if there is one. */
export function helmObstacle(): string | false {
  return programObstacle(program) && 'helm is not installed: ./scripts/install-test-tools'
}

export class Helm {
  readonly #chart: string

  /** @param chart the directory of the chart */
  constructor(chart: string) {
    this.#chart = chart
  }

  /** Returns what helm says about the chart. Throws if it finds a fault, however small. */
  lint(values: object): string {
    return run(['lint', '--strict', '--values', '-', this.#chart], values)
  }

  /** Returns the manifests as YAML. Throws if helm cannot render them. */
  template({ Name, Namespace }: Release, values: object): string {
    return run(['template', Name, this.#chart, '--namespace', Namespace, '--values', '-'], values)
  }
}

/** JSON is YAML, too, so values need no translation. */
function run(args: readonly string[], values: object): string {
  const { status, stdout, stderr } = spawnSync(program, args, {
    input: JSON.stringify(values),
    encoding: 'utf8',
  })
  if (status !== 0) throw new Error(`helm ${args.join(' ')}: ${stdout}${stderr}`)
  return stdout
}
