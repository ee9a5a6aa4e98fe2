/** Builds the native addons for another processor, as for a package that has those of both. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, readdirSync, readFileSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { root } from '../support/server/package-user.ts'
import { programObstacle } from '../support/kit/program-obstacle.ts'
import { temporaryDirectory } from '../support/kit/temporary-directory.ts'

const skip = programObstacle('aarch64-linux-gnu-gcc')
/** `e_machine` of an ELF header (ELF-64 Object File Format, 4). */
const machineAt = 18
const arm64 = 183

test('scripts/build-native arm64 makes every addon for 64-bit ARM', { skip }, (t) => {
  const directory = temporaryDirectory(t)
  const bindings = join(directory, 'native-bindings')
  mkdirSync(join(directory, 'scripts'))
  mkdirSync(bindings)
  cpSync(join(root, 'scripts/build-native'), join(directory, 'scripts/build-native'))
  const sources = readdirSync(join(root, 'native-bindings')).filter((name) =>
    /\.(?:c|h|gyp)$/.test(name),
  )
  for (const name of sources) cpSync(join(root, 'native-bindings', name), join(bindings, name))
  symlinkSync(join(root, 'node_modules'), join(directory, 'node_modules'))
  const { status, stderr } = spawnSync(join(directory, 'scripts/build-native'), ['arm64'])
  assert.equal(status, 0, stderr.toString())
  const place = join(bindings, 'prebuilds/linux-arm64')
  const addons = sources
    .filter((name) => name.endsWith('.c'))
    .map((name) => name.replace(/c$/, 'node'))
  assert.deepEqual(readdirSync(place).toSorted(), addons.toSorted())
  for (const addon of addons) {
    assert.equal(readFileSync(join(place, addon)).readUInt16LE(machineAt), arm64, addon)
  }
})

test('scripts/build-native refuses a processor that it does not know', () => {
  const { status, stderr } = spawnSync(join(root, 'scripts/build-native'), ['mips'])
  assert.equal(status, 2)
  assert.match(stderr.toString(), /expected arm64 or no argument/)
})
