/** The script runs in a real fish, which says what it would offer. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { programObstacle } from '../../../support/kit/program-obstacle.ts'
import { temporaryDirectory } from '../../../support/kit/temporary-directory.ts'
import { environmentWithPostbote } from '../../../support/programs/postbote-in-path.ts'

const skip = programObstacle('fish')

test('fish completes commands, options, paths and words, with and without =', { skip }, (t) => {
  const home = temporaryDirectory(t)
  mkdirSync(join(home, 'data'))
  const env = { ...environmentWithPostbote(t), HOME: home }
  /** Returns what fish offers at the end of a line: words, and after a tab what they mean. */
  const described = (line: string): readonly string[] => {
    const args = ['-N', '-c', 'postbote completion fish | source; complete -C $argv[1]', line]
    const output = execFileSync('fish', args, { encoding: 'utf8', cwd: home, env })
    return output.split('\n').filter(Boolean)
  }
  const offered = (line: string): readonly string[] =>
    described(line).map((text) => text.replace(/\t.*/, ''))
  assert.match(described('postbote bots l').join(), /^list\tlists the bots/)
  assert.ok(offered('postbote ').includes('serve'))
  assert.deepEqual(offered('postbote dead-letters r'), ['reasons', 'replay'])
  assert.deepEqual(offered('postbote push 4711 --ord'), ['--ordering-key'])
  assert.deepEqual(offered('postbote serve --log-level er'), ['error'])
  assert.deepEqual(offered('postbote serve --log-level=er'), ['--log-level=error'])
  assert.deepEqual(offered('postbote serve --dir da'), ['data/'])
  assert.deepEqual(offered('postbote serve --dir=da'), ['--dir=data/'])
  assert.deepEqual(offered('postbote bots list --limit '), [])
})
