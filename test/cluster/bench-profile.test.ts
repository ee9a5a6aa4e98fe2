import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const bench = fileURLToPath(new URL('../../bench/main.js', import.meta.url))

test('the profile of a case beside other queues names functions of the server, and its table the threads', async () => {
  const { stdout } = await promisify(execFile)(process.execPath, [
    bench,
    '--quick',
    '--profile',
    'peers-consume',
  ])
  assert.match(stdout, /#### Self time\n +\d+\.\d % {2}/)
  assert.match(stdout, /#### Charged to the nearest function of ours\n[^#]+ src\//)
  assert.match(stdout, /\| postbote: worker 0 +\| +\d+\.\d\d \|/)
})
