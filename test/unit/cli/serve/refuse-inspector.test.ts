import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { run } from '../../../support/kit/child-process.ts'

const file = fileURLToPath(
  new URL('../../../../src/cli/serve/refuse-inspector.js', import.meta.url),
)

test('an inspector that was opened before the first line is closed, and a signal opens none', async () => {
  const program = `
    const inspector = await import('node:inspector')
    inspector.open(0, '127.0.0.1')
    await import(${JSON.stringify(file)})
    const atOnce = inspector.url()
    process.kill(process.pid, 'SIGUSR1')
    await new Promise((resolve) => setTimeout(resolve, 20))
    console.log(String(atOnce), String(inspector.url()))`
  const { stdout } = await run(process.execPath, ['--input-type=module', '-e', program])
  assert.equal(stdout, 'undefined undefined\n')
})
