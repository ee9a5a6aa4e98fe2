/**
 * The script runs in a real zsh. Its completion system runs only on a terminal, so the functions of that system print
 * what they are called with.
 */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { test } from 'node:test'
import { commandTable } from '../../../../src/cli/commands/command-table.ts'
import { completionModel } from '../../../../src/cli/completion/completion-model.ts'
import { zshCompletion } from '../../../../src/cli/completion/zsh-completion.ts'
import { programObstacle } from '../../../support/kit/program-obstacle.ts'

const skip = programObstacle('zsh')
const script = zshCompletion(completionModel(commandTable))
const system = `
compdef() { [[ "$*" == '_postbote postbote' ]] || exit 3 }
_describe() { print -l -- "\${(P@)@[-1]}" }
_files() { print files }
compadd() { shift; print -l -- "$@" }
compset() { PREFIX="\${PREFIX#*=}" }
`

/** Returns what the script offers for the last of these words: the words without their descriptions. */
function offered(...words: readonly string[]): readonly string[] {
  const call = `${system}
${script}
words=(postbote "$@")
CURRENT=$#words
PREFIX="$words[-1]"
_postbote`
  const output = execFileSync('zsh', ['-f', '-c', call, 'zsh', ...words], { encoding: 'utf8' })
  return output.split('\n').flatMap((line) => (line === '' ? [] : [line.replace(/:.*/, '')]))
}

test('zsh completes commands, options, paths and words', { skip }, () => {
  assert.deepEqual(offered('bots', ''), ['list', 'show', 'register', 'token', 'set', 'remove'])
  assert.ok(offered('push', '4711', '--').includes('--ordering-key'))
  assert.ok(!offered('push', '4711', '--').includes('--limit'))
  assert.ok(offered('bots', 'list', '--').includes('--after'))
  assert.ok(!offered('bots', 'show', '--').includes('--after'))
  assert.ok(offered('serve', '--log-level', '').includes('error'))
  assert.deepEqual(offered('serve', '--dir', ''), ['files'])
  assert.deepEqual(offered('serve', '--dir=da'), ['files'])
  assert.deepEqual(offered('bots', 'list', '--limit', ''), [])
})
