/**
 * The chart for Kubernetes, as far as that can be checked without a cluster: its templates, rendered by `renderTemplate`, are
 * YAML, fit together, and start a server with options that exist. Where there is helm, it finds no fault with the chart, and
 * renders the same.
 */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { type Config, parseConfig } from '../../src/config/config.ts'
import { stopMsMax } from '../../scripts/service-limits.ts'
import { Helm, helmObstacle } from '../support/programs/helm.ts'
import { root } from '../support/server/package-user.ts'
import { renderTemplate } from '../support/programs/render-template.ts'
import { yamlDocuments, yamlObstacle } from '../support/kit/yaml.ts'

interface Variable {
  readonly name: string
  readonly value?: string
  readonly valueFrom?: { readonly fieldRef: { readonly fieldPath: string } }
}

interface Probe {
  readonly httpGet: { readonly path: string; readonly port: string }
}

interface Container {
  readonly args: readonly string[]
  readonly image: string
  readonly env: readonly Variable[]
  readonly ports: readonly { readonly name: string; readonly containerPort: number }[]
  readonly startupProbe: Probe
  readonly livenessProbe: Probe
  readonly readinessProbe: Probe
  readonly volumeMounts: readonly { readonly name: string; readonly mountPath: string }[]
  readonly securityContext: object
  readonly resources: object
}

interface Manifest {
  readonly kind: string
  readonly metadata: { readonly name: string }
  readonly stringData?: Readonly<Record<string, string>>
  // oxlint-disable-next-line typescript/no-explicit-any -- the specification of any kind of object
  readonly spec: any
}

const chart = join(root, 'charts/postbote')
const skip = yamlObstacle()
const release = { Name: 'bots', Namespace: 'apps' }
const adminKey = 'an admin key of the test'
const database = 'postgres://postbote:secret@db1,db2:5432/postbote'
const clustered = {
  replicas: 3,
  options: { database },
  cluster: { enabled: true, key: 'a key of the cluster' },
}

test('each template of the chart is YAML, alone and for a cluster', { skip }, () => {
  for (const values of [{}, clustered, { existingSecret: 'mine', adminHosts: ['push.example'] }]) {
    const kinds = rendered(values).map(({ kind }) => kind)
    const secret = 'existingSecret' in values ? [] : ['Secret']
    const expected = [
      ...secret,
      'PodDisruptionBudget',
      'Service',
      'Service',
      'Service',
      'StatefulSet',
    ]
    assert.deepEqual(kinds.toSorted(), expected.toSorted())
  }
})

test('a pod starts one server with its updates on a volume', { skip }, () => {
  const manifests = rendered({ options: { 'log-level': 'warn' }, workers: 3 })
  const { config, container } = serverOf(manifests)
  assert.deepEqual(container.args, ['serve'])
  assert.equal(config.logLevel, 'warn')
  assert.equal(config.workers, 3)
  assert.equal(config.dir, '/data/postbote')
  assert.deepEqual(config.adminHosts, [
    'bots-private',
    'bots-private.apps',
    'bots-private.apps.svc',
    'bots-private.apps.svc.cluster.local',
  ])
  assert.deepEqual(manifestOf(manifests, 'Secret').stringData?.['admin.key'], adminKey)
  const { spec } = manifestOf(manifests, 'StatefulSet')
  assert.equal(spec.replicas, 1)
  assert.equal(spec.volumeClaimTemplates[0].metadata.name, container.volumeMounts[0]?.name)
  assert.equal(spec.volumeClaimTemplates[0].spec.storageClassName, undefined)
})

test('the pods of a cluster have names, addresses and keys of their own, and no volume', {
  skip,
}, () => {
  const manifests = rendered(clustered)
  const { config } = serverOf(manifests)
  assert.equal(config.databases.length, 1)
  assert.deepEqual(config.clusterListen, { host: '0.0.0.0', port: 8450 })
  assert.deepEqual(config.clusterAdvertise, { host: '10.1.2.3', port: 8450 })
  assert.equal(config.nodeName, 'bots-0')
  assert.equal(config.clusterKeyFile, '/etc/postbote/cluster.key')
  const { spec } = manifestOf(manifests, 'StatefulSet')
  assert.equal(spec.replicas, 3)
  assert.equal(spec.volumeClaimTemplates, undefined)
  const secret = manifestOf(manifests, 'Secret').stringData ?? {}
  assert.deepEqual(Object.keys(secret).toSorted(), ['admin.key', 'cluster.key', 'config.json'])
})

test('no secret is in another object than the Secret', { skip }, () => {
  const others = rendered(clustered).filter(({ kind }) => kind !== 'Secret')
  const text = JSON.stringify(others)
  for (const secret of [adminKey, 'secret@', clustered.cluster.key]) assert(!text.includes(secret))
})

test('services, probes and the disruption budget find the pods', { skip }, () => {
  const manifests = rendered({})
  const { spec } = manifestOf(manifests, 'StatefulSet')
  const { container, config } = serverOf(manifests)
  const { labels } = spec.template.metadata
  assert.deepEqual(spec.selector.matchLabels, labels)
  assert.deepEqual(manifestOf(manifests, 'PodDisruptionBudget').spec.selector.matchLabels, labels)
  const services = manifests.filter(({ kind }) => kind === 'Service')
  assert(services.some(({ metadata }) => metadata.name === spec.serviceName))
  const ports = container.ports.map(({ name }) => name)
  for (const service of services) {
    assert.deepEqual(service.spec.selector, labels)
    for (const { targetPort } of service.spec.ports) assert(ports.includes(targetPort))
  }
  assert.deepEqual(
    container.ports.map(({ containerPort }) => containerPort),
    [config.httpPort, config.adminPort],
  )
  const { startupProbe, livenessProbe, readinessProbe } = container
  assert.deepEqual(
    [startupProbe, livenessProbe, readinessProbe].map(({ httpGet }) => httpGet),
    ['/healthz', '/healthz', '/readyz'].map((path) => ({ path, port: 'private' })),
  )
})

test('a pod has few rights, and time to end', { skip }, () => {
  const { spec } = manifestOf(rendered({}), 'StatefulSet').spec.template
  const { container } = serverOf(rendered({}))
  assert.deepEqual(container.securityContext, {
    allowPrivilegeEscalation: false,
    readOnlyRootFilesystem: true,
    capabilities: { drop: ['ALL'] },
  })
  assert.equal(spec.securityContext.runAsNonRoot, true)
  assert.equal(spec.securityContext.runAsUser, 1_000)
  assert(spec.terminationGracePeriodSeconds * 1_000 > stopMsMax)
  // A service named postbote would set POSTBOTE_PORT, which the server refuses as an unknown option.
  assert.equal(spec.enableServiceLinks, false)
})

test('other options are a change of the pods', { skip }, () => {
  assert.notEqual(checksum({}), checksum({ 'log-level': 'warn' }))
})

test('the chart has the version of the server', { skip }, () => {
  const { version }: { version: string } = JSON.parse(read('../../package.json'))
  const [about] = yamlDocuments<{ version: string; appVersion: string }>(read('Chart.yaml'))
  assert.deepEqual([about?.version, about?.appVersion], [version, version])
  assert.equal(serverOf(rendered({})).container.image, `postbote:${version}`)
})

test('the schema of the values knows each value that it restricts', { skip }, () => {
  const { properties }: { properties: object } = JSON.parse(read('values.schema.json'))
  const [defaults] = yamlDocuments<object>(read('values.yaml'))
  const unknown = Object.keys(properties).filter((name) => !(name in (defaults ?? {})))
  assert.deepEqual(unknown, [])
})

test('helm finds no fault with the chart, and renders it as these tests do', {
  skip: skip === false ? helmObstacle() : skip,
}, async (t) => {
  const helm = new Helm(chart)
  const own = {
    existingSecret: 'mine',
    adminHosts: ['push.example'],
    image: { repository: 'registry.example/postbote' },
    resources: { limits: { memory: '1Gi' } },
    persistence: { storageClass: 'fast', size: '1Gi' },
  }
  for (const [name, values] of Object.entries({ alone: {}, clustered, own })) {
    await t.test(name, () => {
      const all = { adminKey, ...values }
      assert.match(helm.lint(all), /1 chart\(s\) linted, 0 chart\(s\) failed/)
      const byHelm = yamlDocuments<Manifest>(helm.template(release, all))
      assert.deepEqual(byHelm.toSorted(byName), rendered(values).toSorted(byName))
    })
  }
  await t.test('it refuses values that cannot work', () => {
    for (const [values, reason] of [
      [{}, 'adminKey'],
      [{ adminKey, replicas: 2 }, 'replicas'],
      [{ adminKey, cluster: { enabled: true } }, 'key'],
    ] as const) {
      assert.throws(() => helm.template(release, values), new RegExp(reason))
    }
  })
})

function byName(one: Manifest, other: Manifest): number {
  return `${one.kind} ${one.metadata.name}`.localeCompare(`${other.kind} ${other.metadata.name}`)
}

function checksum(options: object): string {
  const { template } = manifestOf(rendered({ options }), 'StatefulSet').spec
  return template.metadata.annotations['checksum/options']
}

/** The values of the chart with these in their place, as helm merges them: nested objects are merged, too. */
function rendered(values: object): Manifest[] {
  const [defaults] = yamlDocuments<Record<string, unknown>>(read('values.yaml'))
  const merged: Record<string, unknown> = { ...defaults, adminKey }
  for (const [key, value] of Object.entries(values)) {
    assert(key in merged, `${key} is no value of the chart`)
    const isObject = typeof value === 'object' && !Array.isArray(value)
    merged[key] = isObject ? { ...Object(merged[key]), ...value } : value
  }
  return readdirSync(join(chart, 'templates')).flatMap((name) =>
    yamlDocuments<Manifest>(
      renderTemplate(read(`templates/${name}`), { Values: merged, Release: release }),
    ),
  )
}

function manifestOf(manifests: readonly Manifest[], kind: string): Manifest {
  const [found] = manifests.filter((manifest) => manifest.kind === kind)
  assert(found !== undefined, `there is no ${kind}`)
  return found
}

/** The options of the server in a pod, read as the server reads them. */
function serverOf(manifests: readonly Manifest[]): {
  readonly container: Container
  readonly config: Config
} {
  const container: Container = manifestOf(manifests, 'StatefulSet').spec.template.spec.containers[0]
  const fields: Readonly<Record<string, string>> = {
    'status.podIP': '10.1.2.3',
    'metadata.name': 'bots-0',
  }
  const env: Record<string, string> = {}
  for (const { name, value, valueFrom } of container.env) {
    const text = value ?? fields[valueFrom?.fieldRef.fieldPath ?? '']
    assert(text !== undefined, name)
    env[name] = text.replace(/\$\((\w+)\)/g, (_whole, other: string) => env[other] ?? '')
  }
  const { stringData = {} } = manifestOf(manifests, 'Secret')
  const config = parseConfig({
    argv: [],
    env,
    readFile: (file) => stringData[file.replace('/etc/postbote/', '')] ?? '',
  })
  return { container, config }
}

function read(name: string): string {
  return readFileSync(join(chart, name), 'utf8')
}
