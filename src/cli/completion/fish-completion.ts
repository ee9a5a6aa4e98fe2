/** The completion script of fish. */
import type { CompletionModel, CompletionState, ValueCompletion } from './completion-model.ts'

/** Returns the script. */
export function fishCompletion({ groups, states }: CompletionModel): string {
  const lines = states.flatMap(stateLines)
  return `# Completion of postbote for fish: postbote completion fish | source
function __postbote_at
  set -l words (commandline -opc)[2..-1]
  set -l key "$words[1]"
  if contains -- "$key" ${groups.join(' ')}; and test (count $words) -gt 1
    set key "$key $words[2]"
  end
  test "$key" = "$argv[1]"
end
complete -c postbote -f
${lines.join('\n')}
`
}

function stateLines({ words, commands, options }: CompletionState): readonly string[] {
  const at = `complete -c postbote -n '__postbote_at "${words}"'`
  return [
    ...commands.map(({ word, sentence }) => `${at} -a ${word} -d ${quoted(sentence)}`),
    ...options.map(
      ({ word, sentence, value }) =>
        `${at} -l ${word.slice(2)}${flagsOf(value)} -d ${quoted(sentence)}`,
    ),
  ]
}

function flagsOf(value: ValueCompletion): string {
  if (value === 'none') return ''
  if (value === 'path') return ' -r -F'
  return typeof value === 'string' ? ' -x' : ` -x -a '${value.join(' ')}'`
}

function quoted(text: string): string {
  return `'${text.replaceAll('`', '').replace(/['\\]/g, '\\$&')}'`
}
