import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { copyFileSync, existsSync, mkdirSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { lockFile, mapRegion } from '../../../native-bindings/shared-region.ts'
import { run } from '../../support/kit/child-process.ts'
import { nativeChildPath } from '../../support/kit/native-child.ts'
import { temporaryDirectory } from '../../support/kit/temporary-directory.ts'

test('a new region is zeros in a private file whose blocks are reserved', (t) => {
  const path = join(temporaryDirectory(t), 'region')
  const region = mapRegion(path, 1_000_000, true)
  assert.equal(region.byteLength, 1_000_000)
  assert.ok(new Uint8Array(region).every((byte) => byte === 0))
  const { mode, size, blocks } = statSync(path)
  assert.equal(mode & 0o777, 0o600)
  assert.equal(size, 1_000_000)
  assert.ok(blocks * 512 >= 1_000_000, `only ${blocks} blocks are reserved`)
})

test('two mappings of one file share the memory, even within a process', (t) => {
  const path = join(temporaryDirectory(t), 'region')
  const first = new Int32Array(mapRegion(path, 4096, true))
  const second = new Int32Array(mapRegion(path, 4096, false))
  Atomics.add(first, 7, 5)
  Atomics.add(second, 7, 6)
  assert.equal(Atomics.load(first, 7), 11)
})

test('creation over an existing file is refused and leaves it unchanged', (t) => {
  const path = join(temporaryDirectory(t), 'region')
  writeFileSync(path, 'precious')
  assert.throws(() => mapRegion(path, 4096, true), {
    code: 'EEXIST',
    message: `cannot create ${path}: File exists`,
  })
  assert.equal(statSync(path).size, 8)
})

test('a file that is missing, empty, no regular file or of another size is refused with its name', (t) => {
  const dir = temporaryDirectory(t)
  const path = join(dir, 'region')
  assert.throws(() => mapRegion(path, 0, false), {
    code: 'ENOENT',
    message: `cannot open ${path}: No such file or directory`,
  })
  writeFileSync(path, '')
  assert.throws(() => mapRegion(path, 0, false), {
    message: `cannot map ${path}: it has 0 bytes, expected at least 1`,
  })
  truncateSync(path, 100)
  assert.throws(() => mapRegion(path, 4096, false), {
    message: `cannot map ${path}: it has 100 bytes, expected 4096`,
  })
  assert.throws(() => mapRegion(dir, 0, false), { code: 'EISDIR' })
  assert.throws(() => mapRegion('/dev/null', 0, false), { code: 'EINVAL' })
})

test('arguments of the wrong type are TypeErrors', (t) => {
  const path = join(temporaryDirectory(t), 'region')
  assert.throws(() => mapRegion(path, 0, true), TypeError)
  assert.throws(() => mapRegion(path, -1, false), TypeError)
  assert.throws(() => mapRegion(`${path}\0x`, 4096, true), TypeError)
  assert.throws(() => Reflect.apply(mapRegion, undefined, [7, 4096, true]), TypeError)
  assert.throws(() => Reflect.apply(lockFile, undefined, [undefined]), TypeError)
})

test('a full disk is an error at creation and leaves no file', async (t) => {
  const dir = temporaryDirectory(t)
  const script =
    'mount -t tmpfs -o size=1m tmpfs "$1" && "$2" "$3" fill-disk "$1" 4000000 && ls "$1"'
  const namespace = ['-rm', 'sh', '-c', script, 'sh', dir, process.execPath, nativeChildPath]
  if (spawnSync('unshare', ['-rm', 'mount', '-t', 'tmpfs', 'tmpfs', dir]).status !== 0) {
    t.skip('needs unshare and the right to mount a small tmpfs in a namespace of its own')
    return
  }
  const { stdout } = await run('unshare', namespace)
  const [outcome, ...files] = stdout.trim().split('\n')
  assert.deepEqual(JSON.parse(outcome!), {
    code: 'ENOSPC',
    message: `cannot reserve and map ${join(dir, 'region')}: No space left on device`,
  })
  assert.deepEqual(files, [])
})

test('a region without references is unmapped', async (t) => {
  const path = join(temporaryDirectory(t), 'region')
  const { stdout } = await run(process.execPath, [
    '--expose-gc',
    nativeChildPath,
    'forget-mappings',
    path,
  ])
  assert.ok(Number(stdout) <= 1, `${stdout} of 50 mappings are left`)
})

test('if the addon was not built, the error names the command that builds it', async (t) => {
  const dir = temporaryDirectory(t)
  mkdirSync(join(dir, 'dist/native-bindings'), { recursive: true })
  writeFileSync(join(dir, 'package.json'), '{"type":"module"}')
  for (const name of ['shared-region.js', 'load-addon.js']) {
    const built = new URL(`../../../native-bindings/${name}`, import.meta.url)
    copyFileSync(built, join(dir, 'dist/native-bindings', name))
  }
  const copy = join(dir, 'dist/native-bindings/shared-region.js')
  const unbuilt: { lockFile: typeof lockFile } = await import(pathToFileURL(copy).href)
  const system = `${process.platform}-${process.arch}`
  const prebuilds = `native-bindings/prebuilds/${system}`
  const missing = join(dir, prebuilds, 'shared_region.node')
  assert.throws(() => unbuilt.lockFile(join(dir, 'lock')), {
    message: `the native addon was not built for ${system}: ${missing} is missing; run "npm run build:native"`,
  })
  mkdirSync(join(dir, prebuilds), { recursive: true })
  writeFileSync(missing, 'not a library')
  assert.throws(() => unbuilt.lockFile(join(dir, 'lock')), /cannot be loaded; build it again/)
  assert.equal(existsSync(join(dir, 'lock')), false)
})
