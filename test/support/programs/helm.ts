/** helm and the types of Kubernetes' objects, which scripts/install-helm brings, for one chart. They need no cluster for this. */
import { spawnSync } from 'node:child_process'
import { existsSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { programObstacle } from '../kit/program-obstacle.ts'
import { root } from '../server/package-user.ts'

interface Release {
  readonly Name: string
  readonly Namespace: string
}

interface KubernetesObject {
  readonly apiVersion: string
  readonly kind: string
}

/** Where scripts/install-helm puts them. */
const brought = join(tmpdir(), 'postbote-helm')
const program = existsSync(join(brought, 'helm')) ? join(brought, 'helm') : 'helm'
const types = join(brought, 'types/node_modules')

/** Why there is no helm; false if there is one. */
export function helmObstacle(): string | false {
  const obstacle = programObstacle(program) !== false || !existsSync(types)
  return obstacle && 'helm is not installed: ./scripts/install-test-tools'
}

export class Helm {
  readonly #chart: string

  /** @param chart the directory of the chart */
  constructor(chart: string) {
    this.#chart = chart
  }

  /** Returns what helm says about the chart. Throws if it finds a fault, however small. */
  lint(values: object): string {
    return run(program, ['lint', '--strict', '--values', '-', this.#chart], values)
  }

  /** Returns the manifests as YAML. Throws if helm cannot render them. */
  template({ Name, Namespace }: Release, values: object): string {
    const where = [Name, this.#chart, '--namespace', Namespace, '--values', '-']
    return run(program, ['template', ...where], values)
  }

  /** Returns what an installation says at its end. */
  notes({ Name, Namespace }: Release, values: object): string {
    const where = [Name, this.#chart, '--namespace', Namespace, '--values', '-']
    const [, notes] = run(program, ['install', ...where, '--dry-run=client'], values).split(
      'NOTES:',
    )
    if (notes === undefined) throw new Error('the chart has no notes')
    return notes
  }
}

/**
 * Compares objects with the types of Kubernetes and of the Prometheus Operator, which also know every name of a field. Throws if
 * one does not fit.
 *
 * @param directory - for the program that the compiler checks
 */
export function checkTypes(objects: readonly KubernetesObject[], directory: string): void {
  const lines = objects.flatMap((object, nth) => {
    const { apiVersion, kind } = object
    const isOfOperator = apiVersion.startsWith('monitoring.coreos.com')
    const of = isOfOperator ? '@kubernetes-models/prometheus-operator' : 'kubernetes-models'
    return [
      `import type { I${kind} as Type${nth} } from '${join(types, of, apiVersion, 'index.js')}'`,
      `export const object${nth}: Type${nth} = ${JSON.stringify(object)}`,
    ]
  })
  const file = join(directory, 'objects.ts')
  writeFileSync(file, lines.join('\n'))
  const flags = ['--ignoreConfig', '--noEmit', '--strict', '--module', 'nodenext', '--skipLibCheck']
  run(join(root, 'node_modules/.bin/tsc'), [...flags, '--types', '', file])
}

/** JSON is YAML, too, so values need no translation. */
function run(command: string, args: readonly string[], values: object = {}): string {
  const { status, stdout, stderr } = spawnSync(command, args, {
    input: JSON.stringify(values),
    encoding: 'utf8',
  })
  if (status !== 0) throw new Error(`${command} ${args.join(' ')}: ${stdout}${stderr}`)
  return stdout
}
