/**
 * The Debian below the image of a release: the C and C++ libraries that Node.js needs, a shell and the basic commands, so that
 * `exec` into a container works, and no package manager that could install more. mmdebstrap brings the packages and verifies
 * them with Debian's keys; they are only unpacked, so this works for processors other than that of this machine.
 */
import { createHash } from 'node:crypto'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Architecture } from './architecture.ts'
import { run } from './run.ts'

export const debianRelease = 'bookworm'
const chosen = ['base-files', 'coreutils', 'dash', 'libstdc++6', 'netbase']
/** Dependencies of the scripts of those packages, which are not run. */
const needless = new Set([
  'debianutils',
  'dpkg',
  'libmd0',
  'mawk',
  'tar',
  'liblzma5',
  'libbz2-1.0',
  'libzstd1',
  'zlib1g',
])
const mirrors = ['', '-security'].map((kind) => {
  const suite = kind === '' ? debianRelease : `${debianRelease}${kind}`
  return `deb http://deb.debian.org/debian${kind} ${suite} main`
})
/** Manuals, translations and the like. The copyright of each package stays. */
const needlessFolders = ['info', 'lintian', 'locale', 'man'].map((name) => `usr/share/${name}`)

export interface DebianPackage {
  readonly name: string
  readonly version: string
  readonly architecture: string
  /** Of the file of the package, in hexadecimal. */
  readonly sha256: string
}

/** Unpacks the base into a folder, and returns the packages that it consists of. */
export function unpackDebian(to: string, { debian }: Architecture): readonly DebianPackage[] {
  const making = mkdtempSync(join(tmpdir(), 'postbote-debian-'))
  try {
    // The sandbox of apt needs a /dev/null that any user may write.
    const apt = ['--aptopt=APT::Sandbox::User "root"', '--skip=cleanup/apt', '--quiet']
    const what = ['--variant=extract', `--architectures=${debian}`, `--include=${chosen.join()}`]
    run('mmdebstrap', [
      '--mode=root',
      '--format=directory',
      ...apt,
      ...what,
      debianRelease,
      making,
      ...mirrors,
    ])
    const archives = join(making, 'var/cache/apt/archives')
    const files = readdirSync(archives).filter((name) => name.endsWith('.deb'))
    const found = files.toSorted().map((name) => unpack(join(archives, name), to))
    for (const folder of needlessFolders) rmSync(join(to, folder), { recursive: true, force: true })
    return found.filter((each) => each !== undefined)
  } finally {
    rmSync(making, { recursive: true })
  }
}

function unpack(file: string, to: string): DebianPackage | undefined {
  const field = (name: string): string => run('dpkg-deb', ['--field', file, name]).trim()
  const name = field('Package')
  if (needless.has(name)) return undefined
  mkdirSync(join(to, 'var/lib/dpkg/status.d'), { recursive: true })
  run('dpkg-deb', ['--extract', file, to])
  // Where scanners look for the packages of images without dpkg.
  writeFileSync(join(to, 'var/lib/dpkg/status.d', name), run('dpkg-deb', ['--field', file]))
  const sha256 = createHash('sha256').update(readFileSync(file)).digest('hex')
  return { name, version: field('Version'), architecture: field('Architecture'), sha256 }
}
