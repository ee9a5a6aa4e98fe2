/** Rules that neither the compiler nor the linter checks. CONTRIBUTING.md lists all of them. */
import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { brokenOrder, importsIn, roomOf } from '../scripts/rooms.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))
const skipped = new Set(['.git', 'node_modules', 'dist', 'data', 'build', 'prebuilds', 'results'])
const files = filesIn('')
const sources = files.filter((file) => /^(src|workers|native-bindings)\/.*\.ts$/.test(file))
const allTypeScript = files.filter((file) => file.endsWith('.ts') && !file.endsWith('.d.ts'))

/** Imports that run against the order of rooms, from before there were rooms. The list may only become shorter. */

test('files are named in kebab-case', () => {
  const odd = allTypeScript.filter(
    (file) => !/^[a-z0-9]+(-[a-z0-9]+)*(\.test)?\.ts$/.test(basename(file)),
  )
  assert.deepEqual(odd, [])
})

test('a file of src has an export with its name', () => {
  const odd = sources
    .filter((file) => !exportsItsName(file) && !basename(file).endsWith('limits.ts'))
    .map((file) => basename(file))
  // Entry files, and families of small functions in a file with the family's name. This list may only get shorter.
  assert.deepEqual(odd.toSorted(), [
    'cluster-worker.ts',
    'config-options.ts',
    'config-text.ts',
    'config-values.ts',
    'first-paint.ts',
    'json-automaton.ts',
    'json-scan.ts',
    'main.ts',
    'program.ts',
    'shared-region.ts',
    'time-to-live.ts',
  ])
})

test('a file of C has at most 600 lines, as the linter allows files of TypeScript', () => {
  const native = files.filter((file) => /\.[ch]$/.test(file))
  assert(native.length > 0)
  assert.deepEqual(
    native.filter((file) => read(file).split('\n').length > 601),
    [],
  )
})

test('imports between the rooms of src go one way', () => {
  const odd = sources.flatMap((file) =>
    importsOf(file)
      .filter((imported) => brokenOrder(file, imported) !== undefined)
      .map((imported) => `${file} imports ${imported}`),
  )
  assert.deepEqual(odd, [])
})

test('each folder of src is a room, or the page', () => {
  const odd = sources.filter((file) => /^src\/.*\//.test(file) && roomOf(file) === undefined)
  assert.deepEqual(
    odd.filter((file) => !isOfPage(file)),
    [],
  )
})

test('only the file that chooses the store, and the commands, name an implementation of it', () => {
  // The thread has nothing but the files of one store.
  const mayChoose =
    /^(?:src\/(?:store\/(?:level|engine-of)|cli|nodes|features\/(?:backup|repair))|workers\/verify-file)\b/
  const odd = sources.flatMap((file) =>
    importsOf(file)
      .filter((imported) => /^src\/(?:store\/level|nodes\/postgres)/.test(imported))
      .filter(() => !mayChoose.test(file))
      // What the name of a database is, is no implementation.
      .filter((imported) => !imported.endsWith('/pg-url.ts'))
      .map((imported) => `${file} imports ${imported}`),
  )
  assert.deepEqual(odd, [])
})

test('the reader of LevelDB files has a few doors, which only the store and the thread that verifies use', () => {
  const doors = ['file-parts', 'level-log', 'level-manifest', 'salvage-logs', 'verify-file']
  const odd = sources.flatMap((file) =>
    importsOf(file)
      .filter(
        (imported) =>
          imported.startsWith('src/leveldb-files/') && !file.startsWith('src/leveldb-files/'),
      )
      // What is found in files is what the port of the store says of them, too.
      .filter((imported) => imported !== 'src/leveldb-files/files-part.ts')
      .filter(
        (imported) =>
          !(
            /^(?:src\/store\/level\/|workers\/verify-file)/.test(file) &&
            doors.includes(basename(imported, '.ts'))
          ),
      )
      .map((imported) => `${file} imports ${imported}`),
  )
  assert.deepEqual(odd, [])
})

test('the client for producers imports only types and tables of the server, and of the server only the command line imports the client', () => {
  const shared = /^(clients\/typescript\/.*|src\/kit\/(update-types|clock|errors|limits))\.ts$/
  const ofClient = files.filter((file) => /^clients\/typescript\/.*\.ts$/.test(file))
  assert(ofClient.length > 0)
  const odd = [...sources, ...ofClient].flatMap((file) =>
    importsOf(file)
      .filter((imported) =>
        file.startsWith('clients/typescript/')
          ? !shared.test(imported)
          : imported.startsWith('clients/typescript/') && !file.startsWith('src/cli/'),
      )
      .map((imported) => `${file} imports ${imported}`),
  )
  assert.deepEqual(odd, [])
})

test('the page of the dashboard imports only its own files and the table of operations, and the server imports nothing of it', () => {
  const odd = sources.flatMap((file) =>
    importsOf(file)
      .filter((imported) => isOfPage(file) !== isOfPage(imported))
      // Its types, and how a call, a change, attempts, waits and places are written: no schema gets into the page.
      .filter(
        (imported) =>
          !/^src\/(?:modules\/api-operations|api\/operation|api\/target-of|api\/update-in|api\/change-text|api\/fold-attempts|api\/wait-text|api\/place-text|api\/dropped-response)\.ts$/.test(
            imported,
          ),
      )
      .map((imported) => `${file} imports ${imported}`),
  )
  assert.deepEqual(odd, [])
})

test('each example is one file that imports packages only', () => {
  const examples = files.filter((file) => /^examples\/.*\.ts$/.test(file))
  assert(examples.length > 2)
  assert.deepEqual(examples.flatMap(importsOf), [])
})

test('no file imports itself through other files, not even for types', () => {
  assert.deepEqual(cyclesIn(new Map(allTypeScript.map((file) => [file, importsOf(file)]))), [])
})

test('the search for cycles finds one of two files and one of three, and none if two paths meet', () => {
  assert.deepEqual(cyclesIn(graphOf('a:b b:a')), ['a -> b -> a'])
  assert.deepEqual(cyclesIn(graphOf('x:a a:b b:dc c:a d:')), ['a -> b -> c -> a'])
  assert.deepEqual(cyclesIn(graphOf('a:bc b:d c:d d:')), [])
})

test('a file of more than 60 lines opens with a comment that says what it is for', () => {
  const odd = sources.filter((file) => {
    const text = read(file).replace(/^#!.*\n/, '')
    return text.split('\n').length > 60 && !text.startsWith('/**')
  })
  assert.deepEqual(odd, [])
})

test('sources have no non-null assertions and use only # for private members', () => {
  const odd = sources.flatMap((file) =>
    codeOf(file)
      .split('\n')
      .filter((line) => /[\w)\]]!(?!=)[.:;,)\]\s]|^\s+(private|protected|public) /.test(line))
      .map((line) => `${file}: ${line.trim()}`),
  )
  assert.deepEqual(odd, [])
})

test('a unit test is at the path of its source and begins with its name', () => {
  const supportFolders = readdirSync(join(root, 'test/support')).map((name) =>
    join('test/support', name),
  )
  const odd = files.filter((file) => {
    if (!/^test\/unit\/.*\.test\.ts$/.test(file)) return false
    const folder = dirname(file).replace(/^test\/unit\/?/, '')
    const name = basename(file, '.test.ts')
    return ![...['src', '', 'test'].map((place) => join(place, folder)), ...supportFolders].some(
      (place) => hasSource(place, name),
    )
  })
  assert.deepEqual(odd, [])
})

test('each dependency is pinned to one version, because npm installs the package without the lock file', () => {
  const { dependencies, devDependencies }: Readonly<Record<string, Record<string, string>>> =
    JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  const loose = Object.entries({ ...devDependencies, ...dependencies }).filter(
    ([, version]) => !/^(?:npm:[\w-]+@)?\d+\.\d+\.\d+$/.test(version),
  )
  assert.deepEqual(loose, [])
})

test('the lock file names no registry', () => {
  assert(!read('package-lock.json').includes('"resolved"'))
})

test('the lock file has the packages of every platform, which npm ci requires', () => {
  interface Lock {
    readonly packages: Record<string, { readonly optionalDependencies?: Record<string, string> }>
  }
  const { packages }: Lock = JSON.parse(read('package-lock.json'))
  const missing = Object.entries(packages).flatMap(([path, { optionalDependencies = {} }]) =>
    Object.keys(optionalDependencies).filter(
      (name) => !(`node_modules/${name}` in packages || `${path}/node_modules/${name}` in packages),
    ),
  )
  assert.deepEqual(missing, [])
})

test('no file names a path of the machine on which it was written', () => {
  const place = /(?<![\w.])\/(?:home|root|Users|work)\/\w/
  const odd = files.filter((file) => file !== 'test/tidy.test.ts' && place.test(read(file)))
  assert.deepEqual(odd, [])
})

function isOfPage(file: string): boolean {
  return file.startsWith('src/page/')
}

/** `update-queue-model` tests `update-queue`, too. */
function hasSource(folder: string, name: string): boolean {
  if (!existsSync(join(root, folder))) return false
  return readdirSync(join(root, folder))
    .filter((file) => file.endsWith('.ts'))
    .some((file) => `${name}-`.startsWith(`${basename(file, '.ts')}-`))
}

function filesIn(folder: string): string[] {
  return readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    if (skipped.has(entry.name) || entry.isSymbolicLink()) return []
    const path = join(folder, entry.name)
    return entry.isDirectory() ? filesIn(path) : [path]
  })
}

function read(file: string): string {
  return readFileSync(join(root, file), 'utf8')
}

/** Removes comments and the contents of strings, well enough for these rules. */
function codeOf(file: string): string {
  return read(file)
    .replace(/\/\*[\s\S]*?\*\/|(?<!:)\/\/.*/g, '')
    .replace(/'(?:[^'\\\n]|\\.)*'/g, "''")
}

/** Whether one export of the file has all words of the file's name in its name. */
function exportsItsName(file: string): boolean {
  const words = basename(file, '.ts')
    .split('-')
    .map((word) => word.replace(/s$/, ''))
  const exported = read(file).matchAll(
    /^export .*?\b(?:class|function\*?|const|interface|type) (\w+)/gm,
  )
  return [...exported].some(([, name = '']) =>
    words.every((word) => name.toLowerCase().includes(word)),
  )
}

function importsOf(file: string): readonly string[] {
  return importsIn(file, read(file))
}

/** `a:bc b:` is a file a that imports b and c, and a file b without imports. */
function graphOf(text: string): Map<string, string[]> {
  return new Map(text.split(' ').map((file) => [file.charAt(0), file.slice(2).split('')]))
}

/**
 * Returns cycles in a graph of imports, at least one of each strongly connected component, by a depth-first search that
 * knows its path.
 */
function cyclesIn(graph: ReadonlyMap<string, readonly string[]>): string[] {
  const cycles: string[] = []
  const done = new Set<string>()
  const walk = (file: string, way: readonly string[]): void => {
    const at = way.indexOf(file)
    if (at !== -1) cycles.push([...way.slice(at), file].join(' -> '))
    if (at !== -1 || done.has(file)) return
    for (const imported of graph.get(file) ?? []) walk(imported, [...way, file])
    done.add(file)
  }
  for (const file of graph.keys()) walk(file, [])
  return cycles
}
