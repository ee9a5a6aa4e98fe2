/**
 * Makes `postbote-client`, a package of the client for producers alone: `npm run pack:client [directory]`. It needs no
 * compiler and no native code, so it installs wherever a producer runs.
 *
 * The package has the compiled files that the client imports, with their types, and one dependency. Its page is
 * docs/use/client.md with the name of this package.
 */
import { copyFileSync, cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

interface Manifest {
  readonly version: string
  readonly license: string
  readonly engines: object
  readonly dependencies: Readonly<Record<string, string>>
}

const root = fileURLToPath(new URL('../../', import.meta.url))
const name = 'postbote-client'
const entry = 'clients/typescript/postbote-client'

const target = resolve(process.argv[2] ?? join(root, 'dist/client-package'))
rmSync(target, { recursive: true, force: true })
const packages = new Set<string>()
for (const file of [...reachableFrom(`${entry}.js`), ...reachableFrom(`${entry}.d.ts`)]) {
  const to = join(target, 'lib', file)
  mkdirSync(dirname(to), { recursive: true })
  copyFileSync(join(root, 'dist', file), to)
}
cpSync(join(root, 'LICENSE'), join(target, 'LICENSE'))
writeFileSync(join(target, 'README.md'), readme())
writeFileSync(join(target, 'package.json'), `${JSON.stringify(manifest(), undefined, 2)}\n`)
process.stdout.write(`${target}\n`)

/** Returns the files below dist that a file imports, directly or not, with itself. Collects the packages, too. */
function reachableFrom(first: string): ReadonlySet<string> {
  const found = new Set([first])
  for (const file of found) {
    const text = readFileSync(join(root, 'dist', file), 'utf8').replace(/^\s*\/?\*.*$/gm, '')
    for (const [, imported = ''] of text.matchAll(/(?<!\.)\b(?:from|import) ?\(?'([^']+)'/g)) {
      if (imported.startsWith('.')) {
        // Declarations import the name of the source.
        const compiled = imported.replace(/\.ts$/, '.d.ts')
        found.add(join(dirname(file), compiled))
      } else if (!imported.startsWith('node:')) {
        packages.add(imported)
      }
    }
  }
  return found
}

function manifest(): object {
  const own: Manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  const dependencies = [...packages].map((each) => {
    const version = own.dependencies[each]
    if (version === undefined) throw new Error(`${each}: expected a dependency of the server`)
    return [each, version] as const
  })
  return {
    name,
    version: own.version,
    description: 'Pushes updates to a Postbote server: idempotent, in order, with back-pressure.',
    license: own.license,
    type: 'module',
    engines: own.engines,
    files: ['lib'],
    exports: { '.': { types: `./lib/${entry}.d.ts`, default: `./lib/${entry}.js` } },
    dependencies: Object.fromEntries(dependencies),
  }
}

/**
 * The page of the client, without how to make this package and what a checkout has. Its links to other pages lead nowhere
 * from here, so only their texts stay.
 */
function readme(): string {
  return readFileSync(join(root, 'docs/use/client.md'), 'utf8')
    .replace(/ \[The producer's first page\].*$/m, '')
    .replace(/ Programs inside a checkout .*$/m, '')
    .replaceAll('postbote/client', name)
    .replace(/\[([^\]]+)\]\((?!https?:|#)[^)]*\)/g, '$1')
}
