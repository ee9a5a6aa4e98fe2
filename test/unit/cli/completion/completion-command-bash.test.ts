/** The script runs in a real bash, which calls its function as for the key Tab. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { programObstacle } from '../../../support/kit/program-obstacle.ts'
import { temporaryDirectory } from '../../../support/kit/temporary-directory.ts'
import { environmentWithPostbote } from '../../../support/programs/postbote-in-path.ts'

const skip = programObstacle('bash')
const call = `source <(postbote completion bash)
[[ $(complete -p postbote) == 'complete -F _postbote postbote' ]] || exit 3
COMP_WORDS=(postbote "$@")
COMP_CWORD=$#
_postbote
printf '%s\\n' "\${COMPREPLY[@]}"`

test('bash completes commands, options, paths and words, with and without =', { skip }, (t) => {
  const cwd = temporaryDirectory(t)
  mkdirSync(join(cwd, 'data one'))
  writeFileSync(join(cwd, 'data.json'), '')
  const env = environmentWithPostbote(t)
  /** Returns what bash offers for the last of these words. */
  const offered = (...words: readonly string[]): readonly string[] => {
    const args = ['--norc', '--noprofile', '-u', '-c', call, 'bash', ...words]
    return execFileSync('bash', args, { encoding: 'utf8', cwd, env }).split('\n').filter(Boolean)
  }
  assert.deepEqual(offered('bo'), ['bots'])
  assert.deepEqual(offered('dead-letters', 'r'), ['reasons', 'replay'])
  assert.deepEqual(offered('push', '4711', '--ord'), ['--ordering-key'])
  assert.deepEqual(offered('serve', '--dir', 'da').toSorted(), ['data one', 'data.json'])
  assert.deepEqual(offered('serve', '--dir', '=', 'data.'), ['data.json'])
  assert.deepEqual(offered('serve', '--dir', '=').toSorted(), ['data one', 'data.json'])
  assert.deepEqual(offered('serve', '--log-level', 'er'), ['error'])
  assert.equal(offered('serve', '--log-level', '=').length, 7)
  assert.deepEqual(offered('bots', 'list', '--limit', ''), [])
  assert.deepEqual(offered('frobnicate', '*'), [])
})
