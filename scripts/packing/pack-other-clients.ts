/**
 * The clients for producers in Python and Go: a wheel and a source archive that pip installs without building anything, and a
 * zip of a Go module (go.dev/ref/mod#zip-files).
 */
import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { gzipSync } from 'node:zlib'
import { filesBelow } from './files-below.ts'
import { tarOf } from './tar-of.ts'
import { zipOf } from './zip-of.ts'

export interface OtherClientsOptions {
  /** The checkout. */
  readonly built: string
  readonly version: string
  readonly epochS: number
  /** A folder for what the source archive consists of; it does not exist yet. */
  readonly making: string
  readonly target: string
}

/** Writes the archives of these clients. */
export function packOtherClients(options: OtherClientsOptions): void {
  packPython(options)
  packGo(options)
}

function packPython({ built, version, epochS, making, target }: OtherClientsOptions): void {
  const folder = join(built, 'clients/python')
  const name = `postbote_client-${version}`
  const page = readFileSync(join(folder, 'README.md'), 'utf8')
  const project = readFileSync(join(folder, 'pyproject.toml'), 'utf8')
  const metadata = metadataOf(project, page, version)
  const license = readFileSync(join(built, 'LICENSE'))
  const sources = filesOf(join(folder, 'postbote_client'), 'postbote_client', /\.(?:py|typed)$/)

  const wheel = new Map(sources)
  wheel.set(`${name}.dist-info/METADATA`, Buffer.from(metadata))
  wheel.set(`${name}.dist-info/licenses/LICENSE`, license)
  const tag = 'Wheel-Version: 1.0\nGenerator: postbote\nRoot-Is-Purelib: true\nTag: py3-none-any\n'
  wheel.set(`${name}.dist-info/WHEEL`, Buffer.from(tag))
  const lines = [...wheel].map(
    ([path, content]) => `${path},${digestOf(content)},${content.length}`,
  )
  const record = `${name}.dist-info/RECORD`
  wheel.set(record, Buffer.from(`${lines.toSorted().join('\n')}\n${record},,\n`))
  writeFileSync(join(target, `${name}-py3-none-any.whl`), zipOf(wheel))

  const place = join(making, name)
  mkdirSync(place, { recursive: true })
  for (const [path, content] of sources) {
    mkdirSync(dirname(join(place, path)), { recursive: true })
    writeFileSync(join(place, path), content)
  }
  writeFileSync(join(place, 'PKG-INFO'), metadata)
  writeFileSync(join(place, 'LICENSE'), license)
  writeFileSync(join(place, 'README.md'), page)
  writeFileSync(join(place, 'pyproject.toml'), project)
  const tar = join(making, `${name}.tar`)
  tarOf({ folder: making, to: tar, epochS, only: name })
  writeFileSync(join(target, `${name}.tar.gz`), gzipSync(readFileSync(tar), { level: 9 }))
}

/** Core metadata 2.4, from the project file, which has to have the version of the release. */
function metadataOf(project: string, page: string, version: string): string {
  const field = (name: string): string => {
    const [, value] = new RegExp(`^${name} = "(.*)"$`, 'm').exec(project) ?? []
    if (value === undefined) throw new Error(`clients/python/pyproject.toml: expected ${name}`)
    return value
  }
  if (field('version') !== version) {
    throw new Error(`clients/python/pyproject.toml: expected version = "${version}"`)
  }
  return `Metadata-Version: 2.4
Name: ${field('name')}
Version: ${version}
Summary: ${field('description')}
License-Expression: MIT
License-File: LICENSE
Requires-Python: ${field('requires-python')}
Description-Content-Type: text/markdown

${page}`
}

function packGo({ built, version, target }: OtherClientsOptions): void {
  const folder = join(built, 'clients/go')
  const [, module] = /^module (\S+)$/m.exec(readFileSync(join(folder, 'go.mod'), 'utf8')) ?? []
  if (module === undefined) throw new Error('clients/go/go.mod: expected the name of its module')
  const inside = `${module}@v${version}`
  const files = new Map(filesOf(folder, inside, /\.(?:go|mod|sum|md)$/))
  files.set(`${inside}/LICENSE`, readFileSync(join(built, 'LICENSE')))
  writeFileSync(join(target, `postbote-client-go-v${version}.zip`), zipOf(files))
}

/** The files below a folder whose names match, under the names that they get. */
function filesOf(folder: string, inside: string, wanted: RegExp): readonly [string, Buffer][] {
  return filesBelow(folder)
    .filter((file) => wanted.test(file))
    .map((file) => [`${inside}/${relative(folder, file)}`, readFileSync(file)])
}

/** As RECORD has it: base64 for URLs, without its padding. */
function digestOf(content: Buffer): string {
  return `sha256=${createHash('sha256').update(content).digest('base64url')}`
}
