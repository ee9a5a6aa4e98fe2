import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseConfig, reloadedConfig, withNewOptions } from '../../../src/config/config.ts'

const configOf = (...argv: string[]) => parseConfig({ argv, env: {}, readFile: () => '' })

test('a reload uses new options, and names those that require a restart', () => {
  const running = configOf('--workers=2', '--admin-port=9000')
  const read = configOf('--workers=3', '--local', '--max-update-bytes=2000')
  const { config, needRestart } = reloadedConfig(running, read)
  assert.deepEqual(needRestart.toSorted(), ['admin-port', 'workers'])
  assert.equal(config.workers, 2)
  assert.equal(config.adminPort, 9000)
  assert.equal(config.local, true)
  assert.equal(config.maxUpdateBytes, 2000)
})

test('unchanged options require no restart', () => {
  const config = configOf('--workers=2')
  assert.deepEqual(reloadedConfig(config, configOf('--workers=2')), { config, needRestart: [] })
})

test('options that an earlier version has read get the defaults of those that it does not know', () => {
  const all = configOf('--workers=2', '--max-update-bytes=2000')
  const { relayFrom: _unknown, maxUpdateBytes, ...earlier } = all
  // What the primary sends has passed through JSON, which leaves out undefined values.
  const sent = JSON.parse(JSON.stringify({ ...earlier, maxUpdateBytes }))
  assert.deepEqual(withNewOptions(sent), all)
})
