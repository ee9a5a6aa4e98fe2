/**
 * The Debian below the image of a release: the C and C++ libraries that Node.js needs, a shell and the basic commands, so that
 * `exec` into a container works, and no package manager that could install more. scripts/bring-debian brings the packages;
 * they are only unpacked, so this works for processors other than that of this machine.
 */
import { createHash } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { run } from './run.ts'

/** Manuals, translations and the like. The copyright of each package stays. */
const needlessFolders = ['info', 'lintian', 'locale', 'man'].map((name) => `usr/share/${name}`)

export interface DebianPackage {
  readonly name: string
  readonly version: string
  readonly architecture: string
  /** Their names, which may be in Debian's own words. */
  readonly licenses: readonly string[]
  /** Of the file of the package, in hexadecimal. */
  readonly sha256: string
}

/** Unpacks the packages of a folder into the base, and returns them. */
export function unpackDebian(archives: string, to: string): readonly DebianPackage[] {
  mkdirSync(join(to, 'var/lib/dpkg/status.d'), { recursive: true })
  const found = readdirSync(archives)
    .toSorted()
    .map((name) => unpack(join(archives, name), to))
  for (const folder of needlessFolders) rmSync(join(to, folder), { recursive: true, force: true })
  return found
}

function unpack(file: string, to: string): DebianPackage {
  const field = (name: string): string => run('dpkg-deb', ['--field', file, name]).trim()
  const name = field('Package')
  run('dpkg-deb', ['--extract', file, to])
  // Where scanners look for the packages of images without dpkg.
  writeFileSync(join(to, 'var/lib/dpkg/status.d', name), run('dpkg-deb', ['--field', file]))
  const sha256 = createHash('sha256').update(readFileSync(file)).digest('hex')
  const licenses = licensesOf(readFileSync(join(to, 'usr/share/doc', name, 'copyright'), 'utf8'))
  return { name, version: field('Version'), architecture: field('Architecture'), licenses, sha256 }
}

/** The licenses that a copyright file names: in fields (DEP 5), or else by their files, if Debian has them. */
export function licensesOf(copyright: string): readonly string[] {
  const fields = [...copyright.matchAll(/^License: *(\S.*)$/gm)]
  const files = [...copyright.matchAll(/\/usr\/share\/common-licenses\/([\w.+-]*\w)/g)]
  const found = (fields.length > 0 ? fields : files).map(([, name = '']) => name)
  return found.length > 0 ? [...new Set(found)].toSorted() : ['see its copyright file']
}
