/** The script runs in a real bash, which calls its function as for the key Tab. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { optionsOf } from '../../../../src/cli/commands/command-row.ts'
import { commandTable } from '../../../../src/cli/commands/command-table.ts'
import { bashCompletion } from '../../../../src/cli/completion/bash-completion.ts'
import { completionModel } from '../../../../src/cli/completion/completion-model.ts'
import { programObstacle } from '../../../support/kit/program-obstacle.ts'
import { temporaryDirectory } from '../../../support/kit/temporary-directory.ts'

const skip = programObstacle('bash')
const script = bashCompletion(completionModel(commandTable))

/** Returns what bash offers for the last of these words. */
function offered(words: readonly string[], cwd?: string): readonly string[] {
  const call = `${script}
[[ $(complete -p postbote) == 'complete -F _postbote postbote' ]] || exit 3
COMP_WORDS=(postbote "$@")
COMP_CWORD=$#
_postbote
printf '%s\\n' "\${COMPREPLY[@]}"`
  const args = ['--norc', '--noprofile', '-u', '-c', call, 'bash', ...words]
  return execFileSync('bash', args, { encoding: 'utf8', cwd }).split('\n').filter(Boolean)
}

test('bash completes commands, then their second words', { skip }, () => {
  const first = offered([''])
  for (const { name } of commandTable) assert.ok(first.includes(name.split(' ')[0] ?? ''), name)
  assert.deepEqual(offered(['bo']), ['bots'])
  assert.deepEqual(offered(['bots', '']), [
    'list',
    'show',
    'register',
    'token',
    'set',
    'remove',
    '--help',
  ])
  assert.deepEqual(offered(['dead-letters', 'r']), ['replay'])
})

test('bash completes the options of a command, and only those', { skip }, () => {
  for (const row of commandTable) {
    const { name } = row
    const words = [...name.split(' '), '--']
    const expected = [...optionsOf(row).map((option) => `--${option.name}`), '--help']
    assert.deepEqual(offered(words).toSorted(), [...new Set(expected)].toSorted(), name)
  }
  assert.deepEqual(offered(['push', '4711', '--ord']), ['--ordering-key'])
})

test('bash completes paths and words after an option, with and without =', { skip }, (t) => {
  const cwd = temporaryDirectory(t)
  mkdirSync(join(cwd, 'data one'))
  writeFileSync(join(cwd, 'data.json'), '')
  assert.deepEqual(offered(['serve', '--dir', 'da'], cwd).toSorted(), ['data one', 'data.json'])
  assert.deepEqual(offered(['serve', '--dir', '=', 'data.'], cwd), ['data.json'])
  assert.deepEqual(offered(['serve', '--log-level', 'er']), ['error'])
  assert.deepEqual(offered(['serve', '--log-level', '=']).length, 7)
  assert.deepEqual(offered(['bots', 'list', '--limit', '']), [])
  assert.deepEqual(offered(['completion', 'f']), ['fish'])
})
