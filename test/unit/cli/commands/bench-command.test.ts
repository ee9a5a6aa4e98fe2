import assert from 'node:assert/strict'
import { test } from 'node:test'
import { bench } from '../../../../src/cli/commands/bench-command.ts'
import { postbote } from '../../../support/programs/postbote.ts'

test('bench runs the bench of the checkout with its own help, arguments and exit code', async () => {
  const help = await postbote(['bench', '--help'])
  assert.equal(help.code, 0)
  assert.match(help.output, /^ {2}--quick .*\n[^]*^Cases:$/m)
  const unknown = await postbote(['bench', 'no-such-case'])
  assert.equal(unknown.code, 2)
  assert.match(unknown.output, /no-such-case/)
})

test('without the bench, the error says where it is', async () => {
  await assert.rejects(bench('/nowhere/bench.js', []), /expected a checkout of the sources/)
})
