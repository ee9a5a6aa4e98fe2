import assert from 'node:assert/strict'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'

const dist = fileURLToPath(new URL('../../../', import.meta.url))

test('bundles have only characters of Latin-1, so that each takes one byte in memory', () => {
  const workers = readdirSync(`${dist}workers`).filter((name) => name.endsWith('.js'))
  for (const file of ['src/program.js', ...workers.map((name) => `workers/${name}`)]) {
    const text = readFileSync(`${dist}${file}`, 'utf8')
    assert.doesNotMatch(text, /[^\0-\xff]/, file)
  }
})

test('main.js has little to read before it refuses the inspector', () => {
  const { size } = statSync(`${dist}src/main.js`)
  assert(size < 4_000, `${size} bytes`)
  assert.match(readFileSync(`${dist}src/main.js`, 'utf8'), /SIGUSR1/)
})
