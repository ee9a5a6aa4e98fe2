import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'

const dist = fileURLToPath(new URL('../../../', import.meta.url))

test('bundles have only characters of Latin-1, so that each takes one byte in memory', () => {
  const workers = readdirSync(`${dist}workers`).filter((name) => name.endsWith('.js'))
  for (const file of ['src/main.js', ...workers.map((name) => `workers/${name}`)]) {
    const text = readFileSync(`${dist}${file}`, 'utf8')
    assert.doesNotMatch(text, /[^\0-\xff]/, file)
  }
})
