/** The tests of the client for Python that are written in Python: what the conformance suite does not see. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { missing } from '../../clients/conformance/conformance-clients.ts'

const root = fileURLToPath(new URL('../../../', import.meta.url))

test('the client for Python passes its own tests', {
  skip: missing('python3', '--version') ?? false,
}, () => {
  const { status, stderr } = spawnSync(
    'python3',
    ['-B', '-W', 'error', '-m', 'unittest', 'discover', 'clients/python/tests'],
    { cwd: root, encoding: 'utf8' },
  )
  assert.equal(status, 0, stderr)
})
