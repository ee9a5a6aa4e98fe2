/**
 * What a release consists of beside its own code, as CycloneDX 1.6: the packages of npm, Node.js, and the packages of Debian
 * below the image. It is made from the lock file and from what was packed, so the same release gives the same document.
 */
import { createHash } from 'node:crypto'
import type { DebianPackage } from './debian-base.ts'

export interface Lock {
  readonly version: string
  readonly packages: Readonly<Record<string, LockedPackage>>
}

interface LockedPackage {
  readonly name?: string
  readonly version?: string
  readonly license?: string
  readonly integrity?: string
}

export interface Materials {
  readonly lock: Lock
  /** What npm installed for each processor, as the lock files say that it leaves in node_modules. */
  readonly installed: readonly Lock[]
  /** Packages for development whose code is in the bundles all the same. */
  readonly bundled: ReadonlySet<string>
  readonly node: { readonly version: string; readonly sha256: Readonly<Record<string, string>> }
  readonly debian: readonly DebianPackage[]
  readonly epochS: number
}

interface Component {
  readonly type: 'library' | 'platform'
  readonly 'bom-ref': string
  readonly name: string
  readonly version: string
  readonly purl: string
  readonly licenses: readonly object[]
  readonly hashes?: readonly { readonly alg: string; readonly content: string }[]
}

/** Returns the document. */
export function billOfMaterials(materials: Materials): object {
  const { lock, installed, bundled, node, debian, epochS } = materials
  const ofPages = Object.entries(lock.packages).filter(([path, entry]) =>
    bundled.has(nameOf(path, entry)),
  )
  const fromNpm = [
    ...installed.flatMap(({ packages }) => Object.entries(packages)),
    ...ofPages,
  ].map(([path, entry]) => npmComponent(path, entry))
  const fromNode = Object.entries(node.sha256).map(([arch, content]) => ({
    ...component('platform', 'node', node.version, `pkg:generic/node@${node.version}?arch=${arch}`),
    licenses: [licenseOf('MIT')],
    hashes: [{ alg: 'SHA-256', content }],
  }))
  const fromDebian = debian.map(({ name, version, architecture, licenses, sha256 }) => {
    const query = `arch=${architecture}&distro=debian-bookworm`
    const purl = `pkg:deb/debian/${encodeURIComponent(name)}@${encodeURIComponent(version)}?${query}`
    return {
      ...component('library', name, version, purl),
      // Debian's names of licenses are not those of SPDX.
      licenses: licenses.map((each) => ({ license: { name: each } })),
      hashes: [{ alg: 'SHA-256', content: sha256 }],
    }
  })
  const components = unique([...fromNpm, ...fromNode, ...fromDebian])
  const serial = createHash('sha256')
    .update(JSON.stringify([lock.version, components]))
    .digest('hex')
  return {
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    serialNumber: `urn:uuid:${uuidOf(serial)}`,
    version: 1,
    metadata: {
      timestamp: new Date(epochS * 1_000).toISOString(),
      component: {
        type: 'application',
        'bom-ref': `pkg:npm/postbote@${lock.version}`,
        name: 'postbote',
        version: lock.version,
        licenses: [{ license: { id: 'MIT' } }],
      },
    },
    components,
  }
}

function npmComponent(path: string, entry: LockedPackage): Component {
  const { version = '', license, integrity } = entry
  const name = nameOf(path, entry)
  const [algorithm = '', digest = ''] = (integrity ?? '').split('-')
  const alg = algorithm.replace('sha', 'SHA-')
  const hash = { alg, content: Buffer.from(digest, 'base64').toString('hex') }
  if (license === undefined) throw new Error(`${name}: expected a license in the lock file`)
  return {
    ...component('library', name, version, `pkg:npm/${name.replace('@', '%40')}@${version}`),
    licenses: [licenseOf(license)],
    ...(integrity === undefined ? {} : { hashes: [hash] }),
  }
}

/** An expression such as `MIT OR Apache-2.0` has a field of its own. */
function licenseOf(license: string): object {
  return / (?:OR|AND|WITH) /.test(license) ? { expression: license } : { license: { id: license } }
}

function component(
  type: Component['type'],
  name: string,
  version: string,
  purl: string,
): Omit<Component, 'licenses'> {
  return { type, 'bom-ref': purl, name, version, purl }
}

function nameOf(path: string, { name }: LockedPackage): string {
  return name ?? path.replace(/^.*node_modules\//, '')
}

/** A package may be in the tree several times, and in the base of each processor. */
function unique(components: readonly Component[]): readonly Component[] {
  const byRef = new Map(components.map((each) => [each['bom-ref'], each]))
  return [...byRef.values()].toSorted((a, b) => (a['bom-ref'] < b['bom-ref'] ? -1 : 1))
}

/** A UUID of version 8, whose bits are the maker's own (RFC 9562, 5.8). */
function uuidOf(hex: string): string {
  const parts = [
    hex.slice(0, 8),
    hex.slice(8, 12),
    `8${hex.slice(13, 16)}`,
    `8${hex.slice(17, 20)}`,
  ]
  return [...parts, hex.slice(20, 32)].join('-')
}
