import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { bundleScript, sealedCache } from '../../../scripts/code-cache.ts'
import { workerFlags } from '../../../src/process/primary/worker-child.ts'
import { entryFiles } from '../../../src/entry-files.ts'
import { temporaryDirectory } from '../../support/kit/temporary-directory.ts'

const bundles = [entryFiles.program, entryFiles.worker].map((url) =>
  fileURLToPath(url).replace(/\.js$/, ''),
)
const [program = '', worker = ''] = bundles

/** Copies the program to another place, where its cache can be changed. Returns the path of its bundle. */
function copiedProgram(t: TestContext): string {
  const root = temporaryDirectory(t)
  const copy = join(root, 'dist/src/program')
  mkdirSync(dirname(copy), { recursive: true })
  for (const ending of ['.js', '.cjs', '.cache']) cpSync(program + ending, copy + ending)
  cpSync(fileURLToPath(entryFiles.manifest), join(root, 'package.json'))
  symlinkSync(
    fileURLToPath(new URL('node_modules', entryFiles.manifest)),
    join(root, 'node_modules'),
  )
  return copy
}

test('the build makes a code cache of the program that V8 takes, and one of the worker with its flags', () => {
  assert.equal(bundleScript(program).cachedDataRejected, false)
  const url = JSON.stringify(new URL('../../../scripts/code-cache.js', import.meta.url).href)
  const code = `import(${url}).then((all) => console.log(all.bundleScript(${JSON.stringify(worker)}).cachedDataRejected))`
  const { stdout } = spawnSync(process.execPath, [...workerFlags, '-e', code], { encoding: 'utf8' })
  assert.equal(stdout, 'false\n')
})

test('a code cache that is missing, cut, damaged, foreign, stale or no file is ignored', (t) => {
  const copy = copiedProgram(t)
  const good = readFileSync(`${copy}.cache`)
  const flipped = Buffer.from(good)
  flipped.writeUInt8(flipped.readUInt8(good.length >> 1) ^ 1, good.length >> 1)
  const head = good.subarray(0, good.indexOf('\n')).toString()
  const data = good.subarray(head.length + 1)
  const source = readFileSync(`${copy}.cjs`)
  const otherHead = (text: string): Buffer => Buffer.concat([Buffer.from(`${text}\n`), data])
  const wrong: readonly (Buffer | 'directory' | 'missing')[] = [
    'missing',
    'directory',
    Buffer.alloc(0),
    good.subarray(0, 20),
    good.subarray(0, -1),
    Buffer.concat([good, Buffer.alloc(1)]),
    flipped,
    data,
    otherHead(head.replace(process.version, 'v99.0.0')),
    otherHead(head.replace(process.arch, 'other')),
    // Of another text with the same length, which V8 does not notice.
    sealedCache(Buffer.from(source).fill('/', source.length - 1), data),
    readFileSync(`${worker}.cache`),
  ]
  for (const [nth, cache] of wrong.entries()) {
    rmSync(`${copy}.cache`, { recursive: true, force: true })
    if (cache === 'directory') mkdirSync(`${copy}.cache`)
    else if (cache !== 'missing') writeFileSync(`${copy}.cache`, cache)
    assert.equal(bundleScript(copy).cachedDataRejected, undefined, `${nth}`)
  }
  // What V8 itself refuses.
  writeFileSync(`${copy}.cache`, sealedCache(source, Buffer.alloc(1_000)))
  const { status, stderr } = spawnSync(process.execPath, [`${copy}.js`, '--version'])
  assert.deepEqual([status, stderr.toString()], [0, ''])
})
