/** The script runs in a real fish, which says what it would offer. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { commandTable } from '../../../../src/cli/commands/command-table.ts'
import { completionModel } from '../../../../src/cli/completion/completion-model.ts'
import { fishCompletion } from '../../../../src/cli/completion/fish-completion.ts'
import { programObstacle } from '../../../support/kit/program-obstacle.ts'
import { temporaryDirectory } from '../../../support/kit/temporary-directory.ts'

const skip = programObstacle('fish')

/** Returns what fish offers at the end of each line. */
function offered(t: TestContext, lines: readonly string[]): readonly (readonly string[])[] {
  const home = temporaryDirectory(t)
  mkdirSync(join(home, 'data'))
  const script = join(home, 'postbote.fish')
  writeFileSync(script, fishCompletion(completionModel(commandTable)))
  return lines.map((line) => {
    const args = ['-N', '-c', `source $argv[1]; complete -C $argv[2]`, script, line]
    const options = { encoding: 'utf8', cwd: home, env: { ...process.env, HOME: home } } as const
    const output = execFileSync('fish', args, options)
    return output.split('\n').flatMap((text) => (text === '' ? [] : [text.split('\t')[0] ?? '']))
  })
}

test('fish completes commands, options, paths and words', { skip }, (t) => {
  const [second, options, words, paths, none] = offered(t, [
    'postbote bots ',
    'postbote push 4711 --ord',
    'postbote serve --log-level er',
    'postbote serve --dir da',
    'postbote bots list --limit ',
  ])
  assert.deepEqual(second?.toSorted(), ['list', 'register', 'remove', 'set', 'show', 'token'])
  assert.deepEqual(options, ['--ordering-key'])
  assert.deepEqual(words, ['error'])
  assert.deepEqual(paths, ['data/'])
  assert.deepEqual(none, [])
})
