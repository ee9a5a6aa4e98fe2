import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { bench } from '../../../../src/cli/commands/bench-command.ts'

const mainFile = fileURLToPath(new URL('../../../../src/main.js', import.meta.url))

function postbote(...argv: readonly string[]): { code: number | null; text: string } {
  const { status, stdout, stderr } = spawnSync(process.execPath, [mainFile, ...argv], {
    encoding: 'utf8',
  })
  return { code: status, text: stdout + stderr }
}

test('bench runs the bench of the checkout with its own help, arguments and exit code', () => {
  const help = postbote('bench', '--help')
  assert.equal(help.code, 0)
  assert.match(help.text, /^ {2}--quick .*\n[^]*^Cases:$/m)
  const unknown = postbote('bench', 'no-such-case')
  assert.equal(unknown.code, 2)
  assert.match(unknown.text, /no-such-case/)
})

test('without the bench, the error says where it is', async () => {
  await assert.rejects(bench('/nowhere/bench.js', []), /expected a checkout of the sources/)
})
