/**
 * The script runs in a real zsh. Its completion system runs only on a terminal, so the functions of that system print
 * what they are called with.
 */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { test } from 'node:test'
import { programObstacle } from '../../../support/kit/program-obstacle.ts'
import { environmentWithPostbote } from '../../../support/programs/postbote-in-path.ts'

const skip = programObstacle('zsh')
const call = `
compdef() { [[ "$*" == '_postbote postbote' ]] || exit 3 }
_describe() { print -l -- "\${(P@)@[-1]}" }
_files() { print "files $PREFIX" }
compset() { PREFIX="\${PREFIX#*=}" }
source <(postbote completion zsh)
words=(postbote "$@")
CURRENT=$#words
PREFIX="$words[-1]"
_postbote`

test('zsh completes commands, options, paths and words, and says what they mean', { skip }, (t) => {
  const env = environmentWithPostbote(t)
  /** Returns what the script offers for the last of these words. */
  const described = (...words: readonly string[]): readonly string[] => {
    const args = ['-f', '-c', call, 'zsh', ...words]
    return execFileSync('zsh', args, { encoding: 'utf8', env }).split('\n').filter(Boolean)
  }
  const offered = (...words: readonly string[]): readonly string[] =>
    described(...words).map((line) => line.replace(/:.*/, ''))
  assert.match(described('bots', 'l').join(), /^list:lists the bots/)
  assert.ok(offered('').includes('serve'))
  assert.ok(offered('push', '4711', '--').includes('--ordering-key'))
  assert.ok(!offered('push', '4711', '--').includes('--limit'))
  assert.deepEqual(offered('serve', '--log-level', 'er'), ['error'])
  assert.deepEqual(offered('serve', '--log-level=er'), ['error'])
  assert.deepEqual(offered('serve', '--dir', ''), ['files '])
  assert.deepEqual(offered('serve', '--dir=da'), ['files da'])
  assert.deepEqual(offered('bots', 'list', '--limit', ''), [])
})
