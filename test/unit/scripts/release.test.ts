/** What a release is made of, as far as that needs none of the programs that make it. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { architectures } from '../../../scripts/packing/architecture.ts'
import {
  billOfMaterials,
  type Lock,
  type Materials,
} from '../../../scripts/packing/bill-of-materials.ts'
import { licensesOf } from '../../../scripts/packing/debian-base.ts'
import {
  controlFile,
  conffile,
  emptyEnvironment,
  maintainerScripts,
  unitOfPackage,
} from '../../../scripts/packing/debian-package.ts'
import { Dockerfile } from '../../../scripts/packing/dockerfile.ts'
import { configOf, writeOciArchive } from '../../../scripts/packing/oci-archive.ts'
import { run } from '../../../scripts/packing/run.ts'
import { zipOf } from '../../../scripts/packing/zip-of.ts'
import { root } from '../../support/server/package-user.ts'
import { temporaryDirectory } from '../../support/kit/temporary-directory.ts'

const epochS = 1_795_000_000
const read = (name: string): string => readFileSync(join(root, name), 'utf8')
const { version }: { readonly version: string } = JSON.parse(read('package.json'))
const lock: Lock = JSON.parse(read('package-lock.json'))
const amd64 = architectures[0] ?? assert.fail()
const debian = {
  name: 'libstdc++6',
  version: '12.2.0-14',
  architecture: 'amd64',
  licenses: ['GPL-3'],
  sha256: 'b'.repeat(64),
}
const fastify = lock.packages['node_modules/fastify'] ?? assert.fail()
const materials: Materials = {
  lock,
  installed: [{ version, packages: { 'node_modules/fastify': fastify } }],
  bundled: new Set(['uplot']),
  node: { version: '24.21.0', sha256: { x64: 'a'.repeat(64) } },
  debian: [debian, debian],
  epochS,
}
interface Bill {
  readonly metadata: { readonly timestamp: string }
  readonly components: readonly {
    readonly name: string
    readonly purl: string
    readonly licenses: readonly object[]
    readonly hashes?: readonly { readonly alg: string; readonly content: string }[]
  }[]
}

test('every file that names the version of the server has the same one', () => {
  assert.match(version, /^\d+\.\d+\.\d+$/)
  assert.equal(lock.version, version)
  assert.equal(lock.packages['']?.version, version)
  assert.match(read('CHANGELOG.md'), new RegExp(`^# Changelog\n\n## ${version}\n`))
  for (const name of ['Chart.yaml', 'values.yaml']) {
    assert.match(read(`charts/postbote/${name}`), new RegExp(`: "?${version}"?$`, 'm'), name)
  }
  const python = read('clients/python/pyproject.toml')
  assert.match(python, new RegExp(`^version = "${version}"$`, 'm'))
  const named = read('docs/start/producer.md').match(/postbote-client-[\d.]+\.tgz/g) ?? []
  assert.deepEqual([...new Set(named)], [`postbote-client-${version}.tgz`])
})

test('the bill of materials has what is shipped, once and with its license, and nothing else', () => {
  const { components, metadata } = billOfMaterials(materials) as Bill
  assert.deepEqual(
    components.map(({ name }) => name),
    ['libstdc++6', 'node', 'fastify', 'uplot'],
  )
  for (const { name, licenses } of components) assert.equal(licenses.length, 1, name)
  assert.equal(metadata.timestamp, '2026-11-18T11:06:40.000Z')
  const ofDebian = components.filter(({ purl }) => purl.startsWith('pkg:deb/'))
  assert.deepEqual(
    ofDebian.map(({ purl }) => purl),
    ['pkg:deb/debian/libstdc%2B%2B6@12.2.0-14?arch=amd64&distro=debian-bookworm'],
  )
  const [hash] = components.find(({ name }) => name === 'fastify')?.hashes ?? []
  assert.equal(hash?.alg, 'SHA-512')
  assert.match(hash?.content ?? '', /^[0-9a-f]{128}$/)
})

test('a package without a license is not packed', () => {
  const { license: _, ...bare } = fastify
  const installed = [{ version, packages: { 'node_modules/fastify': bare } }]
  assert.throws(
    () => billOfMaterials({ ...materials, installed }),
    /^Error: fastify: expected a license/,
  )
})

test('the licenses of a Debian package are those that its copyright file names', () => {
  assert.deepEqual(licensesOf('License: GPL-3+\n text\nLicense: ISC\n\nLicense: GPL-3+\n'), [
    'GPL-3+',
    'ISC',
  ])
  const prose = 'It is in /usr/share/common-licenses/LGPL-2.1 and /usr/share/common-licenses/GPL.\n'
  assert.deepEqual(licensesOf(prose), ['GPL', 'LGPL-2.1'])
  assert.deepEqual(licensesOf('Public domain.'), ['see its copyright file'])
})

test('the same materials give the same bill, and others another serial number', () => {
  assert.equal(textOf(materials), textOf(materials))
  const serial = (of: Materials): string | undefined => /urn:uuid:[^"]+/.exec(textOf(of))?.[0]
  assert.match(
    serial(materials) ?? '',
    /^urn:uuid:[\da-f]{8}-[\da-f]{4}-8[\da-f]{3}-8[\da-f]{3}-[\da-f]{12}$/,
  )
  assert.notEqual(serial(materials), serial({ ...materials, bundled: new Set() }))
})

test('the Debian package says what it is and what it needs', () => {
  const control = controlFile(
    { version, architecture: amd64, description: 'A server.' },
    2_049,
    '2.34',
  )
  const fields = new Map(
    [...control.matchAll(/^(\S+): (.*)$/gm)].map(([, name, value]) => [name, value]),
  )
  assert.equal(fields.get('Version'), version)
  assert.equal(fields.get('Architecture'), 'amd64')
  assert.equal(fields.get('Installed-Size'), '3')
  assert.match(fields.get('Depends') ?? '', /^libc6 \(>= 2\.34\), /)
  assert.match(control, /\n A server\.\n$/)
})

test('the unit of the Debian package is that of the examples with other paths', () => {
  const example = read('examples/systemd/postbote.service')
  const unit = unitOfPackage(example)
  assert.match(unit, /^ExecStart=\/usr\/bin\/postbote serve --dir %S\/postbote$/m)
  assert.match(unit, /^ExecReload=\/usr\/bin\/postbote reload --dir %S\/postbote$/m)
  assert(unit.includes(`EnvironmentFile=-${conffile}\n`))
  assert.doesNotMatch(unit, /\/opt|node /)
  assert.deepEqual(withoutPaths(unit), withoutPaths(example))
})

test('the file of options in the Debian package keeps its text, so no upgrade asks what to do with a changed one', () => {
  const sum = createHash('sha256').update(emptyEnvironment).digest('hex')
  assert.equal(sum, '69cb469573278bce06a8f4559067101cef4c2825aaf31dc0a5c67595d99cd629')
})

test('no script of the Debian package removes anything, so a purge keeps the data', () => {
  for (const [name, text] of Object.entries(maintainerScripts)) {
    assert.match(text, /^#!\/bin\/sh\nset -e\n/, name)
    const commands = text.replace(/echo '[^']*'/g, '')
    assert.doesNotMatch(commands, /\b(?:rm|rmdir|find|unlink)\b/, name)
    run('sh', ['-n', '-c', text])
  }
})

test('the image of a release is run as the Dockerfile says', () => {
  const dockerfile = new Dockerfile(root)
  const config = configOf(dockerfile) as Record<string, unknown>
  assert.equal(config['User'], '1000:1000')
  assert.deepEqual(config['Entrypoint'], ['node', '/postbote/dist/src/main.js'])
  assert.deepEqual(config['Volumes'], { '/data': {} })
  assert.deepEqual(Object.keys(Object(config['ExposedPorts'])), ['8081/tcp', '8082/tcp'])
  const { Test, Interval } = Object(config['Healthcheck'])
  assert.deepEqual([Test[0], Test[1], Interval], ['CMD', 'node', 10e9])
})

test('an OCI archive has one index of all processors, and is the same whenever and by whomever it is made', (t) => {
  const folders = [temporaryDirectory(t), temporaryDirectory(t)]
  const archives = folders.map((folder, nth) => {
    const layer = join(folder, 'layer.tar')
    writeFileSync(layer, 'layer')
    const to = join(folder, 'oci.tar')
    const making = join(folder, 'making')
    mkdirSync(making, { mode: nth === 0 ? 0o700 : 0o755 })
    const images = architectures.map((architecture) => ({ architecture, layers: [layer] }))
    writeOciArchive({
      images,
      dockerfile: new Dockerfile(root),
      version,
      license: 'MIT',
      epochS,
      making,
      to,
    })
    return readFileSync(to)
  })
  assert(archives[0]?.equals(archives[1] ?? Buffer.alloc(0)))
  const listed = run('tar', ['--utc', '--full-time', '-tvf', join(folders[0] ?? '', 'oci.tar')])
  for (const line of listed.trim().split('\n')) assert.match(line, / 0\/0 .* 2026-11-18 11:06:40 /)
  const making = join(folders[0] ?? '', 'making')
  const blob = (digest: string): { manifests: { digest: string; platform: object }[] } =>
    JSON.parse(readFileSync(join(making, 'blobs', digest.replace(':', '/')), 'utf8'))
  const { manifests } = JSON.parse(readFileSync(join(making, 'index.json'), 'utf8'))
  assert.equal(manifests.length, 1)
  assert.deepEqual(
    blob(manifests[0].digest).manifests.map(({ platform }) => platform),
    [
      { architecture: 'amd64', os: 'linux' },
      { architecture: 'arm64', os: 'linux' },
    ],
  )
  for (const name of readdirSync(join(making, 'blobs/sha256'))) {
    const [sum] = run('sha256sum', [join(making, 'blobs/sha256', name)]).split(' ')
    assert.equal(sum, name)
  }
})

test('a zip archive is the same in whatever order its files are found, and can be unpacked', (t) => {
  const files: [string, Buffer][] = [
    ['b/two', Buffer.from('2')],
    ['a.txt', Buffer.from('one')],
  ]
  const archive = zipOf(new Map(files))
  assert.deepEqual(archive, zipOf(new Map(files.toReversed())))
  const file = join(temporaryDirectory(t), 'archive.zip')
  writeFileSync(file, archive)
  const reader = `import zipfile, sys; z = zipfile.ZipFile(sys.argv[1]); print({n: z.read(n) for n in z.namelist()})`
  assert.equal(run('python3', ['-c', reader, file]), "{'a.txt': b'one', 'b/two': b'2'}\n")
})

test('the image and the packages of a release have the Node.js whose use is recommended', () => {
  const [, wanted = ''] = /^ARG NODE_VERSION=(\d+)$/m.exec(read('Dockerfile')) ?? []
  const [, chosen = ''] = /^node_version=(\S+)$/m.exec(read('scripts/release')) ?? []
  assert(chosen.startsWith(`${wanted}.`), chosen)
  const pinned = [...read('scripts/packing/inputs.txt').matchAll(/^node (\S+) [\da-f]{64}$/gm)]
  assert.deepEqual(
    pinned.map(([, named]) => named),
    architectures.map(() => chosen),
  )
})

test('what a release is made of is named with its sum, and with its version what it is made with', () => {
  const lines = read('scripts/packing/inputs.txt').trim().split('\n')
  const known = /^(?:(?:amd64|arm64) \S+ \S+ [\da-f]{64}|tools \S+ \S+|node \S+ [\da-f]{64})$/
  assert.deepEqual(
    lines.filter((line) => !known.test(line)),
    [],
  )
  for (const { debian: arch } of architectures) {
    for (const name of ['libc6', 'libstdc++6', 'netbase']) {
      assert(
        lines.some((line) => line.startsWith(`${arch} ${name} `)),
        `${arch} ${name}`,
      )
    }
  }
})

function textOf(of: Materials): string {
  return JSON.stringify(billOfMaterials(of))
}

/** The lines of a unit in which that of the package has to be the same. */
function withoutPaths(unit: string): readonly string[] {
  return unit.split('\n').filter((line) => !/^(?:#|Exec|Documentation)/.test(line))
}

test('packages of the machine are installed only if one says so', () => {
  const env = { ...process.env, INSTALL_PACKAGES: 'no' }
  const { status, stderr } = spawnSync('./scripts/install-packages', ['a-package'], {
    cwd: root,
    env,
    encoding: 'utf8',
  })
  assert.equal(status, 3)
  assert.match(
    stderr,
    /^expected these packages of Debian, or INSTALL_PACKAGES=yes .*: a-package\n$/,
  )
  assert.match(read('scripts/release'), /^export INSTALL_PACKAGES=.*:-no}$/m)
})
