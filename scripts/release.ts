/**
 * Packs a built checkout into the files of a release. scripts/release prepares what it takes, and calls it:
 *
 *     release.js MAKING TARGET NODE_VERSION NODE_X64 NODE_ARM64
 *
 * MAKING/built is the checkout, MAKING/debian what scripts/bring-debian brings, TARGET an empty folder, and the last two are
 * folders with Node.js. SOURCE_DATE_EPOCH is the time of the commit; every file in every archive gets it.
 */
import { createHash } from 'node:crypto'
import { cpSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Architecture, architectures } from './packing/architecture.ts'
import { billOfMaterials, type Lock } from './packing/bill-of-materials.ts'
import { copyProgram } from './packing/copy-program.ts'
import { type DebianPackage, unpackDebian } from './packing/debian-base.ts'
import { writeDebianPackage } from './packing/debian-package.ts'
import { Dockerfile } from './packing/dockerfile.ts'
import { type PlatformImage, writeOciArchive } from './packing/oci-archive.ts'
import { packOtherClients } from './packing/pack-other-clients.ts'
import { run } from './packing/run.ts'
import { tarOf } from './packing/tar-of.ts'

interface Manifest {
  readonly version: string
  readonly license: string
  readonly description: string
}

const [making = '', target = '', nodeVersion = '', ...nodeFolders] = process.argv.slice(2)
const built = join(making, 'built')
const epochS = Number(process.env['SOURCE_DATE_EPOCH'])
if (!Number.isSafeInteger(epochS) || nodeFolders.length !== architectures.length) {
  throw new Error('expected to be called by scripts/release')
}
const { version, license, description }: Manifest = JSON.parse(readBuilt('package.json'))
const lock: Lock = JSON.parse(readBuilt('package-lock.json'))
const dockerfile = new Dockerfile(built)

run('npm', ['pack', '--silent', '--pack-destination', target], { cwd: built })
const clientFolder = join(making, 'client')
run(process.execPath, [join(built, 'dist/scripts/client-package.js'), clientFolder])
run('npm', ['pack', '--silent', '--pack-destination', target], { cwd: clientFolder })
packOtherClients({ built, version, epochS, making: join(making, 'python'), target })

const debian: DebianPackage[] = []
const installed: Lock[] = []
const images: PlatformImage[] = []
const nodeSums: Record<string, string> = {}
for (const [at, architecture] of architectures.entries()) {
  const nodeFolder = nodeFolders[at] ?? ''
  const own = join(making, architecture.node)
  const program = join(own, 'program')
  copyProgram({ built, to: program, architecture })
  installed.push(JSON.parse(readFileSync(join(program, 'node_modules/.package-lock.json'), 'utf8')))
  const node = { program: join(nodeFolder, 'bin/node'), license: join(nodeFolder, 'LICENSE') }
  nodeSums[architecture.node] = createHash('sha256')
    .update(readFileSync(node.program))
    .digest('hex')
  writeDebianPackage({
    program,
    node,
    built,
    architecture,
    version,
    description,
    epochS,
    making: join(own, 'package'),
    to: join(target, `postbote_${version}_${architecture.debian}.deb`),
  })
  images.push({ architecture, layers: [baseLayer(own, node, architecture), programLayer(own)] })
}
writeOciArchive({
  images,
  dockerfile,
  version,
  license,
  epochS,
  making: join(making, 'oci'),
  to: join(target, `postbote-${version}-oci.tar`),
})

const bill = billOfMaterials({
  lock,
  installed,
  bundled: packagesOfPages(),
  node: { version: nodeVersion, sha256: nodeSums },
  debian,
  epochS,
})
const billText = `${JSON.stringify(bill, undefined, 2)}\n`
writeFileSync(join(target, `postbote-${version}.cdx.json`), billText)

/** Debian and Node.js. */
function baseLayer(
  own: string,
  node: { readonly program: string; readonly license: string },
  architecture: Architecture,
): string {
  const folder = join(own, 'base')
  mkdirSync(join(folder, 'usr/local/bin'), { recursive: true })
  debian.push(...unpackDebian(join(making, 'debian', architecture.debian), folder))
  cpSync(node.program, join(folder, 'usr/local/bin/node'))
  mkdirSync(join(folder, 'usr/share/doc/node'), { recursive: true })
  cpSync(node.license, join(folder, 'usr/share/doc/node/LICENSE'))
  writeFileSync(
    join(folder, 'etc/passwd'),
    'root:x:0:0:root:/root:/bin/sh\npostbote:x:1000:1000::/data:/bin/sh\n',
  )
  writeFileSync(join(folder, 'etc/group'), 'root:x:0:\npostbote:x:1000:\n')
  const to = join(own, 'base.tar')
  tarOf({ folder, to, epochS }, [{ name: 'tmp', owner: 0, mode: '1777' }])
  return to
}

/** The program, its command and an empty data directory, as the last stage of the Dockerfile makes them. */
function programLayer(own: string): string {
  const folder = join(own, 'layer')
  const home = dockerfile.value('WORKDIR')
  cpSync(join(own, 'program'), join(folder, home), { recursive: true, verbatimSymlinks: true })
  mkdirSync(join(folder, 'usr/local/bin'), { recursive: true })
  symlinkSync(`${home}/dist/src/main.js`, join(folder, 'usr/local/bin/postbote'))
  const to = join(own, 'program.tar')
  const name = dockerfile.value('VOLUME').slice(1)
  tarOf({ folder, to, epochS }, [{ name, owner: 1_000, mode: '0700' }])
  return to
}

/** The packages whose code is in the pages that browsers load, although the server does not depend on them. */
function packagesOfPages(): ReadonlySet<string> {
  const folder = join(built, 'src/page')
  const texts = readdirSync(folder).map((name) => readFileSync(join(folder, name), 'utf8'))
  return new Set(
    texts.flatMap((text) =>
      [...text.matchAll(/ from '([a-z][\w-]*)'/g)].map(([, name = '']) => name),
    ),
  )
}

function readBuilt(name: string): string {
  return readFileSync(join(built, name), 'utf8')
}
