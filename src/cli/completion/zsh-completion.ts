/** The completion script of zsh. */
import { type Candidate, type CompletionModel, optionsByValue } from './completion-model.ts'

/** Returns the script, which may be sourced or put into a directory of `fpath`. */
export function zshCompletion(model: CompletionModel): string {
  const values = [...optionsByValue(model).values()].map(
    ({ value, words }) => `    (${words.join('|')}) ${valueLine(value)}; return ;;`,
  )
  const states = model.states.map(
    ({ words, commands, options }) => `    ('${words}')
      candidates=(${commands.map(described).join(' ')})
      switches=(${options.map(described).join(' ')}) ;;`,
  )
  return `#compdef postbote
# Completion of postbote for zsh: source <(postbote completion zsh)
_postbote() {
  local key='' previous="\${words[CURRENT-1]}"
  local -a candidates switches
  if [[ $PREFIX == --*=* ]]; then
    previous="\${PREFIX%%=*}"
    compset -P '*='
  fi
  case $previous in
${values.join('\n')}
  esac
  if (( CURRENT > 2 )); then key="\${words[2]}"; fi
  if (( CURRENT > 3 )); then
    case $key in (${model.groups.join('|')}) key="$key \${words[3]}" ;; esac
  fi
  case $key in
${states.join('\n')}
  esac
  if (( $#candidates )); then _describe -t commands command candidates; fi
  if [[ $PREFIX == -* || $#candidates -eq 0 ]]; then _describe -o -t options option switches; fi
}
if [[ $funcstack[1] == _postbote ]]; then _postbote "$@"; else compdef _postbote postbote; fi
`
}

function valueLine(value: string | readonly string[]): string {
  if (value === 'path') return '_files'
  return typeof value === 'string' ? ':' : `compadd -- ${value.join(' ')}`
}

/** A word and its sentence, as `_describe` reads them. */
function described({ word, sentence }: Candidate): string {
  return `'${word}:${sentence.replaceAll('`', '').replaceAll("'", "'\\''")}'`
}
