import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { examineProcess, nodeVersionMin } from '../../../../src/cli/doctor/examine-process.ts'

function levelsOf(nodeVersion: string, descriptors: string): readonly string[] {
  const limits = `Max open files            ${descriptors}              ${descriptors}         files\n`
  return examineProcess({ nodeVersion, limits }).map(({ level }) => level)
}

test('Node.js must have the version that the package asks for', () => {
  const file = new URL('../../../../../package.json', import.meta.url)
  const { engines }: { engines: { node: string } } = JSON.parse(readFileSync(file, 'utf8'))
  assert.equal(engines.node, `>=${nodeVersionMin.join('.')}`)
  assert.equal(levelsOf('20.19.0', '65536')[0], 'good')
  assert.equal(levelsOf('22.0.0', '65536')[0], 'good')
  assert.equal(levelsOf('20.18.9', '65536')[0], 'bad')
  assert.equal(levelsOf('18.20.0', '65536')[0], 'bad')
})

test('few descriptors are a warning, and very few a fault', () => {
  assert.equal(levelsOf('20.19.0', '65536')[1], 'good')
  assert.equal(levelsOf('20.19.0', '65535')[1], 'warn')
  assert.equal(levelsOf('20.19.0', '1023')[1], 'bad')
  assert.equal(examineProcess({ nodeVersion: '20.19.0', limits: '' })[1]?.level, 'good')
  assert.equal(levelsOf('20.19.0', 'unlimited')[1], 'good')
})
