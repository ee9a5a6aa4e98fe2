/**
 * The chart for Kubernetes, as far as that can be checked without a cluster: what helm renders fits the types of Kubernetes, fits
 * together, and starts a server with options that exist; and values that cannot work are refused by name.
 */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { commandTable } from '../../src/modules/command-table.ts'
import { type Config, parseConfig } from '../../src/config/config.ts'
import { publicPorts } from '../../src/delivery/endpoint/endpoint.ts'
import { startMsMax, stopMsMax } from '../../scripts/service-limits.ts'
import { temporaryDirectory } from '../support/kit/temporary-directory.ts'
import { issueCertificate } from '../support/network/certificates.ts'
import { checkTypes, Helm, helmObstacle } from '../support/programs/helm.ts'
import { root } from '../support/server/package-user.ts'
import { startServer } from '../support/server/server.ts'
import { yamlDocuments, yamlObstacle } from '../support/kit/yaml.ts'

interface Variable {
  readonly name: string
  readonly value?: string
  readonly valueFrom?: { readonly fieldRef: { readonly fieldPath: string } }
}

interface Probe {
  readonly httpGet: { readonly path: string; readonly port: string; readonly scheme: string }
}

interface Container {
  readonly args: readonly string[]
  readonly image: string
  readonly env: readonly Variable[]
  readonly ports: readonly { readonly name: string; readonly containerPort: number }[]
  readonly startupProbe: Probe & {
    readonly periodSeconds: number
    readonly failureThreshold: number
  }
  readonly livenessProbe: Probe
  readonly readinessProbe: Probe
  readonly volumeMounts: readonly { readonly name: string; readonly mountPath: string }[]
  readonly securityContext: object
  readonly lifecycle: {
    readonly preStop: { readonly exec: { readonly command: readonly string[] } }
  }
  readonly resources: object
}

type Labels = Readonly<Record<string, string>>

interface Schema {
  readonly properties?: Readonly<Record<string, Schema>>
  readonly additionalProperties?: boolean | object
  readonly propertyNames?: { readonly not: { readonly enum: readonly string[] } }
}

interface Manifest {
  readonly apiVersion: string
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

/** A server, and where its listeners are. */
interface Place {
  readonly dir: string
  readonly privateUrl: string
  readonly botUrl: string
}

/** What Kubernetes and helm know, and the defaults of the chart leave out. */
const optional = ['global', 'claims']

const chart = join(root, 'charts/postbote')
const skip = yamlObstacle() || helmObstacle()
const helm = new Helm(chart)
const release = { Name: 'bots', Namespace: 'apps' }
const adminKey = 'an admin key of the test'
const database = 'postgres://postbote:secret@db1,db2:5432/postbote'
const everything = {
  ingress: { enabled: true, className: 'nginx', host: 'bots.example', tlsSecret: 'certificate' },
  serviceMonitor: { enabled: true, labels: { release: 'prometheus' }, keySecret: { name: 'read' } },
  networkPolicy: { enabled: true },
  tls: { botsSecret: 'bots-tls', privateSecret: 'private-tls' },
}
const clustered = {
  replicas: 3,
  options: { database },
  cluster: { enabled: true, key: 'a key of the cluster' },
}

test('the chart has these objects, alone and for a cluster', { skip }, () => {
  for (const values of [{}, clustered, { existingSecret: 'mine' }]) {
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
    ['/healthz', '/healthz', '/readyz'].map((path) => ({ path, port: 'private', scheme: 'HTTP' })),
  )
})

test('with certificates of Secrets, each that calls the server speaks TLS', { skip }, () => {
  const manifests = rendered({ ...clustered, ...everything })
  const { container, config } = serverOf(manifests)
  const { volumes } = manifestOf(manifests, 'StatefulSet').spec.template.spec
  const secretOf = (file = '') => {
    const mount = container.volumeMounts.find(({ mountPath }) =>
      file.startsWith(`${mountPath}/tls.`),
    )
    return volumes.find(({ name }: { name: string }) => name === mount?.name)?.secret.secretName
  }
  const { httpCert, httpCertKey, adminCert, adminCertKey } = config
  assert.deepEqual([httpCert, httpCertKey].map(secretOf), ['bots-tls', 'bots-tls'])
  assert.deepEqual([adminCert, adminCertKey].map(secretOf), ['private-tls', 'private-tls'])
  const { startupProbe, livenessProbe, readinessProbe } = container
  for (const { httpGet } of [startupProbe, livenessProbe, readinessProbe])
    assert.equal(httpGet.scheme, 'HTTPS')
  const [endpoint] = manifestOf(manifests, 'ServiceMonitor').spec.endpoints
  assert.equal(endpoint.scheme, 'https')
  assert(config.adminHosts.includes(endpoint.tlsConfig.serverName))
  assert.equal(endpoint.tlsConfig.ca.secret.name, 'private-tls')
  const { annotations } = manifestOf(manifests, 'Ingress').metadata
  assert.equal(annotations?.['nginx.ingress.kubernetes.io/backend-protocol'], 'HTTPS')
  const testPod = JSON.stringify(manifestOf(manifests, 'Pod').spec)
  assert(testPod.includes('private-tls') && !testPod.includes('tls.key'))
})

test('wrong options can be replaced by right ones while no pod gets ready', { skip }, () => {
  // With the default, OrderedReady, Kubernetes waits for ever for the pod with the wrong ones.
  const { spec } = manifestOf(rendered({}), 'StatefulSet')
  assert.equal(spec.podManagementPolicy, 'Parallel')
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
  const [, waitSeconds] = container.lifecycle.preStop.exec.command
  const stopSeconds = Number(waitSeconds) + stopMsMax / 1_000
  assert(spec.terminationGracePeriodSeconds > stopSeconds)
  const { periodSeconds, failureThreshold } = container.startupProbe
  assert(periodSeconds * failureThreshold * 1_000 >= startMsMax)
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

test('a network policy opens the bots’ port to all, the private one to what is named, and links to the pods', {
  skip,
}, () => {
  const privateFrom = [
    { podSelector: { matchLabels: { role: 'shop' } } },
    { namespaceSelector: { matchLabels: { name: 'monitoring' } } },
  ]
  const networkPolicy = { enabled: true, privateFrom }
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
  assert.deepEqual(others, privateFrom)
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

test('helm test pushes to a bot, polls it and removes it, plain and with TLS, and says why it cannot', {
  skip,
}, async (t) => {
  const files = temporaryDirectory(t)
  const file = (name: string) => join(files, name)
  const { cert, key } = issueCertificate({ name: 'bots.example' })
  for (const port of ['bots', 'private']) writeFileSync(file(`${port}.crt`), cert)
  writeFileSync(file('tls.key'), key, { mode: 0o600 })
  const tls = [`http-cert=${file('bots.crt')}`, `admin-cert=${file('private.crt')}`]
  const keys = ['http', 'admin'].map((port) => `${port}-cert-key=${file('tls.key')}`)
  const secure = await startServer(t, { flags: [...tls, ...keys].map((flag) => `--${flag}`) })
  const plain = await startServer(t)
  const run = async (values: object, { dir, privateUrl, botUrl }: Place) => {
    const [{ command, args, env }] = manifestOf(rendered(values), 'Pod').spec.containers
    copyFileSync(join(dir, 'admin.key'), file('admin.key'))
    const urls: Readonly<Record<string, string>> = { BOTS_URL: botUrl, PRIVATE_URL: privateUrl }
    const variables = env.map(({ name, value = '' }: Variable) => {
      const { protocol } = new URL(value, 'file:///')
      return [name, name === 'SECRETS' ? files : urls[name]?.replace('http:', protocol)]
    })
    const child = spawn(process.execPath, [...command.slice(1), ...args], {
      env: Object.fromEntries(variables),
    })
    const texts: string[] = []
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (chunk) => texts.push(String(chunk)))
    const [code] = await once(child, 'close')
    return { code, text: texts.join('') }
  }
  const passed = { code: 0, text: 'a bot got its update\n' }
  assert.deepEqual(await run({}, plain), passed)
  assert.deepEqual(await run({ tls: everything.tls }, secure), passed)
  const { dir, privateUrl } = plain
  const failed = await run({}, { dir, privateUrl, botUrl: privateUrl })
  assert.equal(failed.code, 1)
  assert.match(failed.text, /GET http:\/\/[^/]+\/botTOKEN\/getUpdates\?timeout=5: 404/)
  const { body } = await plain.admin('GET', '/v1/bots')
  assert.deepEqual(body.bots, [])
  writeFileSync(file('private.crt'), issueCertificate({ name: 'bots.example' }).cert)
  const foreign = await run({ tls: everything.tls }, secure)
  assert.deepEqual([foreign.code, foreign.text.includes('self-signed certificate')], [1, true])
})

test('the notes name services, schemes, commands and files that exist', { skip }, () => {
  const notes = helm.notes(release, { adminKey })
  const services = rendered({}).filter(({ kind }) => kind === 'Service')
  for (const [, name] of notes.matchAll(/http:\/\/([\w-]+)\.apps/g))
    assert(services.some(({ metadata }) => metadata.name === name))
  for (const [, name] of notes.matchAll(/-- postbote ([a-z]+(?: (?:create|register))?)/g))
    assert(commandTable.some((command) => command.name === name))
  for (const [file] of notes.matchAll(/docs\/[\w./-]+\w/g)) assert(existsSync(join(root, file)))
  assert(!notes.includes(adminKey))
  assert.match(notes, /This is one server/)
  const more = helm.notes(release, { adminKey, ...clustered, ...everything })
  assert.doesNotMatch(more, /http:|This is one server|docs\//)
  assert.match(more, /from outside at https:\/\/bots.example\n/)
  assert.match(more, /-- postbote reload\n/)
  assert.match(more, /only if networkPolicy.privateFrom names it/)
})

test('other options and keys are a change of the pods', { skip }, () => {
  assert.notEqual(checksum({}), checksum({}, 'another admin key'))
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

test('any two parts of the chart fit the types of Kubernetes together, and helm finds no fault', {
  skip,
}, (t) => {
  const parts = [
    clustered,
    { tls: { botsSecret: 'bots-tls' } },
    { tls: { privateSecret: 'private-tls' } },
    { ingress: everything.ingress },
    { serviceMonitor: everything.serviceMonitor },
    { networkPolicy: everything.networkPolicy, image: { pullSecrets: ['login', 'other'] } },
    { adminHosts: ['push.example'], persistence: { storageClass: 'fast', size: '1Gi' } },
  ]
  // Of any two parts there is a rendering with both, with each alone, and with none.
  const draws = Array.from({ length: 8 }, (_, draw) =>
    parts.filter((_part, nth) => ((nth + 1) & draw).toString(2).replaceAll('0', '').length % 2),
  )
  const all = draws.map((chosen) => {
    const tls = Object.assign({}, ...chosen.map((part) => ('tls' in part ? part.tls : {})))
    return Object.assign({}, ...chosen, { tls })
  })
  const objects = [...all, { existingSecret: 'mine' }].flatMap((values) => rendered(values))
  assert(objects.length > 60)
  checkTypes(objects, temporaryDirectory(t))
  assert.match(
    helm.lint({ adminKey, ...clustered, ...everything }),
    /1 chart\(s\) linted, 0 chart\(s\) failed/,
  )
})

test('values that cannot work are refused by name', { skip }, () => {
  for (const [values, reason] of [
    [{ adminKey: '' }, '/adminKey'],
    [{ adminKey: 1_234_567_890_123_456 }, '/adminKey'],
    [{ replicas: 2 }, '/replicas'],
    [{ replicas: 0 }, '/replicas'],
    [{ cluster: { enabled: true }, options: { database } }, '/cluster/key'],
    [{ ...clustered, options: {} }, "/options': missing property 'database'"],
    [{ cluster: { enabled: 'yes' } }, '/cluster/enabled'],
    [{ worker: 2 }, "'worker' not allowed"],
    [{ workers: '2' }, '/workers'],
    [{ workers: null }, "missing property 'workers'"],
    [{ ingress: null }, "missing property 'ingress'"],
    [{ options: { workers: 2 } }, "propertyName 'workers'"],
    [{ existingSecret: 'mine' }, '/adminKey'],
    [{ adminKey: '', existingSecret: 'mine', options: { demo: true } }, '/options'],
    [{ existingSecret: 'My_Secret' }, '/existingSecret'],
    [{ adminHosts: ['a,b'] }, '/adminHosts/0'],
    [{ persistence: { size: 'large' } }, '/persistence/size'],
    [{ tls: { secret: 'a' } }, "'secret' not allowed"],
    [{ ingress: { hosts: ['a'] } }, "'hosts' not allowed"],
    [{ ingress: { enabled: true } }, '/ingress/host'],
    [{ serviceMonitor: { enabled: true } }, '/serviceMonitor/keySecret/name'],
    [{ spread: { hosts: 'some' } }, '/spread/hosts'],
    [{ networkPolicy: { privateFrom: [{}] } }, '/networkPolicy/privateFrom/0'],
    [{ networkPolicy: { privateFrom: [{ role: 'shop' }] } }, "'role' not allowed"],
    [{ networkPolicy: { egressPorts: ['https'] } }, '/networkPolicy/egressPorts/0'],
  ] as const) {
    assert.throws(() => helm.template(release, { adminKey, ...values }), new RegExp(reason))
  }
})

test('a release whose name no service or pod could have is refused', { skip }, () => {
  for (const name of ['1bots', 'my.bots', 'b'.repeat(53)])
    assert.throws(() => renderedAs(name), /release name "[^"]+": expected at most 52 letters/)
  // A StatefulSet labels its pods with its name, a hyphen and ten digits, and a label has at most 63 characters.
  assert.match(renderedAs('b'.repeat(52)), /kind: StatefulSet/)
})

test('keys and passwords of any characters reach the server as they are', { skip }, () => {
  const odd = `p"ä\\'$\{{ x }} %#:\t<&>😀`
  const password = encodeURIComponent(odd)
  const options = { database: `postgres://postbote:${password}@db/postbote` }
  const { stringData = {} } = manifestOf(
    rendered({ ...clustered, adminKey: odd + adminKey, options }),
    'Secret',
  )
  assert.equal(stringData['admin.key'], odd + adminKey)
  assert.deepEqual(JSON.parse(stringData['config.json'] ?? ''), options)
})

test('options that the chart sets itself are refused, and so are those of its ports', {
  skip,
}, () => {
  const schema: Schema = JSON.parse(read('values.schema.json'))
  const refused: readonly string[] = schema.properties?.['options']?.propertyNames?.not.enum ?? []
  const { container } = serverOf(rendered({ ...clustered, ...everything }))
  const set = container.env.flatMap(({ name }) => {
    const [, option] = /^POSTBOTE_(.+)$/.exec(name) ?? []
    return option === undefined || option === 'CONFIG'
      ? []
      : option.toLowerCase().replaceAll('_', '-')
  })
  const ports = ['http-port', 'http-ip-address', 'admin-port', 'admin-ip-address']
  assert.deepEqual(refused.toSorted(), [...set, ...ports].toSorted())
})

function renderedAs(name: string): string {
  return helm.template({ ...release, Name: name }, { adminKey })
}

function checksum(options: object, key = adminKey): string {
  const { template } = manifestOf(rendered({ options, adminKey: key }), 'StatefulSet').spec
  return template.metadata.annotations['checksum/secret']
}

function isMap(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

const renderedOf = new Map<string, Manifest[]>()

function rendered(values: object): Manifest[] {
  const all = 'existingSecret' in values ? values : { adminKey, ...values }
  const known = renderedOf.get(JSON.stringify(all))
  if (known !== undefined) return known
  const manifests = yamlDocuments<Manifest>(helm.template(release, all))
  renderedOf.set(JSON.stringify(all), manifests)
  return manifests
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
