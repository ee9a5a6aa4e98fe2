import assert from 'node:assert/strict'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'

const dist = fileURLToPath(new URL('../../../', import.meta.url))

test('bundles have only characters of ASCII, so that each takes one byte in memory', () => {
  const workers = readdirSync(`${dist}workers`).filter((name) => /\.c?js$/.test(name))
  for (const file of ['src/program.cjs', ...workers.map((name) => `workers/${name}`)]) {
    const text = readFileSync(`${dist}${file}`, 'utf8')
    assert.doesNotMatch(text, /[^\0-\x7f]/, file)
  }
})

test('entry files have little to read before they refuse the inspector', () => {
  for (const file of ['src/main.js', 'workers/cluster-worker.js']) {
    const { size } = statSync(`${dist}${file}`)
    assert(size < 4_000, `${size} bytes`)
    assert.match(readFileSync(`${dist}${file}`, 'utf8'), /SIGUSR1/)
  }
})
