/**
 * The chart for Kubernetes, as far as that can be checked without a cluster: its templates, rendered by `renderTemplate`, are
 * YAML, fit together, and start a server with options that exist. Where there is helm, it finds no fault with the chart, and
 * renders the same.
 */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { commandTable } from '../../src/cli/commands/command-table.ts'
import { type Config, parseConfig } from '../../src/config/config.ts'
import { publicPorts } from '../../src/webhook/endpoint.ts'
import { stopMsMax } from '../../scripts/service-limits.ts'
import { Helm, helmObstacle } from '../support/programs/helm.ts'
import { root } from '../support/server/package-user.ts'
import { startServer } from '../support/server/server.ts'
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

type Labels = Readonly<Record<string, string>>

interface Schema {
  readonly properties?: Readonly<Record<string, Schema>>
  readonly additionalProperties?: boolean | object
}

interface Manifest {
  readonly kind: string
  readonly metadata: {
    readonly name: string
    readonly labels?: Labels
    readonly annotations?: Readonly<Record<string, string>>
  }
  readonly stringData?: Readonly<Record<string, string>>
  // oxlint-disable-next-line typescript/no-explicit-any -- the specification of any kind of object
  readonly spec: any
}

/** What Kubernetes and helm know, and the defaults of the chart leave out. */
const optional = ['global', 'claims']

const chart = join(root, 'charts/postbote')
const skip = yamlObstacle()
const release = { Name: 'bots', Namespace: 'apps' }
const adminKey = 'an admin key of the test'
const database = 'postgres://postbote:secret@db1,db2:5432/postbote'
const everything = {
  ingress: { enabled: true, className: 'nginx', tlsSecret: 'certificate' },
  serviceMonitor: { enabled: true, labels: { release: 'prometheus' }, keySecret: { name: 'read' } },
  networkPolicy: { enabled: true, prometheusNamespace: { name: 'monitoring' } },
}
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
      'Pod',
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

test('what a cluster may not know is off, and has a switch', { skip }, () => {
  const more = ['Ingress', 'NetworkPolicy', 'ServiceMonitor']
  const usual = new Set(rendered({}).map(({ kind }) => kind))
  const kinds = rendered(everything).map(({ kind }) => kind)
  assert.deepEqual(kinds.filter((kind) => !usual.has(kind)).toSorted(), more)
})

test('the monitor scrapes each pod with a key of a Secret, under the name that the rules select', {
  skip,
}, () => {
  const manifests = rendered(everything)
  const { spec } = manifestOf(manifests, 'ServiceMonitor')
  const services = manifests.filter(
    ({ kind, metadata }) =>
      kind === 'Service' && covers(metadata.labels ?? {}, spec.selector.matchLabels),
  )
  const { serviceName } = manifestOf(manifests, 'StatefulSet').spec
  assert.deepEqual(
    services.map(({ metadata }) => metadata.name),
    [serviceName],
  )
  const [endpoint] = spec.endpoints
  assert.equal(endpoint.port, services[0]?.spec.ports[0].name)
  assert.deepEqual(endpoint.authorization.credentials, { name: 'read', key: 'key' })
  const rules = readFileSync(join(root, 'docs/run/alerts/prometheus-rules.yml'), 'utf8')
  assert(rules.includes(`job="${endpoint.relabelings[0].replacement}"`))
})

test('a network policy opens the bots’ port to all, the private one to producers, and links to the pods', {
  skip,
}, () => {
  const producers = [{ role: 'shop' }, { role: 'billing' }]
  const networkPolicy = { ...everything.networkPolicy, producers }
  const manifests = rendered({ ...clustered, networkPolicy, workers: 3 })
  const { spec } = manifestOf(manifests, 'NetworkPolicy')
  const pods = manifestOf(manifests, 'StatefulSet').spec.selector.matchLabels
  assert.deepEqual(spec.podSelector.matchLabels, pods)
  const [bots, own, links] = spec.ingress
  assert.deepEqual(bots, { ports: [{ port: 'bots' }] })
  assert.deepEqual(own.ports, [{ port: 'private' }])
  const [tester, ...others] = own.from
  const testPod = manifestOf(manifests, 'Pod').metadata.labels ?? {}
  assert(covers(testPod, tester.podSelector.matchLabels) && !covers(testPod, pods))
  assert.deepEqual(others, [
    ...producers.map((matchLabels) => ({ podSelector: { matchLabels } })),
    { namespaceSelector: { matchLabels: { name: 'monitoring' } } },
  ])
  const { config } = serverOf(manifests)
  const among = [{ podSelector: { matchLabels: pods } }]
  const { port } = config.clusterListen ?? { port: 0 }
  const linkPorts = [{ port, endPort: port + (config.workers ?? 0) - 1 }]
  assert.deepEqual(links, { from: among, ports: linkPorts })
  assert.deepEqual(spec.egress.at(-1), { to: among, ports: linkPorts })
  const outside = spec.egress[1].ports.map((each: { port: number }) => each.port)
  assert.deepEqual(new Set(outside), new Set([...publicPorts, 5_432]))
  assert.equal(manifestOf(rendered({ networkPolicy }), 'NetworkPolicy').spec.ingress.length, 2)
})

test('an ingress leads to the port of bots alone, and waits longer than a poll', { skip }, () => {
  const manifests = rendered(everything)
  const { metadata, spec } = manifestOf(manifests, 'Ingress')
  const { service } = spec.rules[0].http.paths[0].backend
  const target = manifests.find(
    (each) => each.kind === 'Service' && each.metadata.name === service.name,
  )
  assert.deepEqual([service.port.name, target?.spec.ports[0].name], ['bots', 'bots'])
  const nginx = readFileSync(join(root, 'docs/run/nginx.conf'), 'utf8')
  const of = (name: string) => metadata.annotations?.[`nginx.ingress.kubernetes.io/${name}`]
  assert(nginx.includes(`proxy_read_timeout ${of('proxy-read-timeout')}s;`))
  assert(nginx.includes(`client_max_body_size ${of('proxy-body-size')};`))
  assert(nginx.includes(`proxy_next_upstream ${of('proxy-next-upstream')};`))
})

test('the pods of a cluster are spread over machines and zones', { skip }, () => {
  const specOf = (values: object) =>
    manifestOf(rendered({ ...clustered, ...values }), 'StatefulSet').spec.template
  const { metadata, spec } = specOf({})
  const [zones] = spec.topologySpreadConstraints
  assert.deepEqual(zones.labelSelector.matchLabels, metadata.labels)
  const [soft] = spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution
  assert.deepEqual(soft.podAffinityTerm.labelSelector.matchLabels, metadata.labels)
  const hard = specOf({ spread: { hosts: 'required' } }).spec.affinity.podAntiAffinity
  assert.deepEqual(hard.requiredDuringSchedulingIgnoredDuringExecution, [soft.podAffinityTerm])
  assert.equal(specOf({ spread: { hosts: 'none' } }).spec.affinity, undefined)
  const alone = manifestOf(rendered({}), 'StatefulSet').spec.template.spec
  assert.deepEqual([alone.affinity, alone.topologySpreadConstraints], [undefined, undefined])
})

test('helm test pushes to a bot, polls it and removes it, and says why it cannot', {
  skip,
}, async (t) => {
  const server = await startServer(t)
  const { spec } = manifestOf(rendered({}), 'Pod')
  const [{ command, args, env }] = spec.containers
  const names = env.map(({ name }: Variable) => name)
  assert.deepEqual(names, ['BOTS_URL', 'PRIVATE_URL', 'ADMIN_KEY_FILE'])
  const run = async (botUrl: string) => {
    const child = spawn(process.execPath, [...command.slice(1), ...args], {
      env: {
        BOTS_URL: botUrl,
        PRIVATE_URL: server.privateUrl,
        ADMIN_KEY_FILE: join(server.dir, 'admin.key'),
      },
    })
    const texts: string[] = []
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (chunk) => texts.push(String(chunk)))
    const [code] = await once(child, 'close')
    return { code, text: texts.join('') }
  }
  assert.deepEqual(await run(server.botUrl), { code: 0, text: 'a bot got its update\n' })
  const failed = await run(server.privateUrl)
  assert.equal(failed.code, 1)
  assert.match(failed.text, /GET http:\/\/[^/]+\/botTOKEN\/getUpdates\?timeout=5: 404/)
  const { body } = await server.admin('GET', '/v1/bots')
  assert.deepEqual(body.bots, [])
})

test('the notes name services, commands and files that exist', { skip }, () => {
  const notes = renderTemplate(read('templates/NOTES.txt'), {
    Values: mergedValues({}),
    Release: release,
  })
  const services = rendered({}).filter(({ kind }) => kind === 'Service')
  for (const [, name] of notes.matchAll(/http:\/\/([\w-]+)\.apps/g))
    assert(services.some(({ metadata }) => metadata.name === name))
  for (const [, name] of notes.matchAll(/-- postbote ([a-z]+(?: create)?)/g))
    assert(commandTable.some((command) => command.name === name))
  for (const [file] of notes.matchAll(/docs\/[\w./-]+\w/g)) assert(existsSync(join(root, file)))
  assert(!notes.includes(adminKey))
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

test('the schema of the values knows each of them, and no other', { skip }, () => {
  const schema: Schema = JSON.parse(read('values.schema.json'))
  const [defaults] = yamlDocuments<object>(read('values.yaml'))
  assert.deepEqual(unknownOf(schema, defaults ?? {}), [])
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
    ...everything,
  }
  const spread = { ...clustered, ...everything, spread: { hosts: 'required' } }
  for (const [name, values] of Object.entries({ alone: {}, clustered, own, spread })) {
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
      [{ adminKey, worker: 2 }, 'worker'],
      [{ adminKey, ingress: { hosts: ['a'] } }, 'hosts'],
      [{ adminKey, serviceMonitor: { enabled: true } }, 'name'],
      [{ adminKey, spread: { hosts: 'some' } }, 'hosts'],
      [{ adminKey, networkPolicy: { producers: [{}] } }, 'producers'],
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
function mergedValues(values: object): Record<string, unknown> {
  const [defaults] = yamlDocuments<Record<string, unknown>>(read('values.yaml'))
  for (const key of Object.keys(values))
    assert(key in (defaults ?? {}), `${key} is no value of the chart`)
  return merge({ ...defaults, adminKey }, values)
}

function merge(defaults: object, values: object): Record<string, unknown> {
  const merged: Record<string, unknown> = { ...defaults }
  for (const [key, value] of Object.entries(values)) {
    const before = merged[key]
    merged[key] = isMap(value) && isMap(before) ? merge(before, value) : value
  }
  return merged
}

function isMap(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function rendered(values: object): Manifest[] {
  const merged = mergedValues(values)
  const files = readdirSync(join(chart, 'templates'), { recursive: true, encoding: 'utf8' })
  return files
    .filter((name) => name.endsWith('.yaml'))
    .flatMap((name) =>
      yamlDocuments<Manifest>(
        renderTemplate(read(`templates/${name}`), { Values: merged, Release: release }),
      ),
    )
}

/** Whether an object with these labels is selected. */
function covers(labels: Labels, selector: Labels): boolean {
  return Object.entries(selector).every(([name, value]) => labels[name] === value)
}

/** The paths of values that the schema or the defaults do not have. What users name, such as labels, is theirs. */
function unknownOf({ properties = {}, additionalProperties }: Schema, defaults: object): string[] {
  if (additionalProperties !== false) return []
  const values = new Map<string, unknown>(Object.entries(defaults))
  const names = new Set([...Object.keys(properties), ...values.keys()])
  return [...names].flatMap((name) => {
    const schema = properties[name]
    if (schema === undefined || !values.has(name)) return optional.includes(name) ? [] : [name]
    const value = values.get(name)
    return isMap(value) ? unknownOf(schema, value).map((path) => `${name}.${path}`) : []
  })
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
