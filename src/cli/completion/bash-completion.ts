/** The completion script of bash, which works from version 3.2 on. */
import { type CompletionModel, optionsByValue } from './completion-model.ts'

/** Returns the script. */
export function bashCompletion(model: CompletionModel): string {
  const values = [...optionsByValue(model).values()].map(
    ({ value, words }) => `    ${words.join('|')})
      ${valueLine(value)}
      return ;;`,
  )
  const states = model.states.map(({ words, commands, options }) => {
    const candidates = [...commands, ...options].map(({ word }) => word)
    return `    '${words}') candidates='${candidates.join(' ')}' ;;`
  })
  return `# Completion of postbote for bash: source <(postbote completion bash)
_postbote() {
  local cur="\${COMP_WORDS[COMP_CWORD]}" prev="\${COMP_WORDS[COMP_CWORD-1]}" key='' candidates=''
  local IFS=$'\\n'
  COMPREPLY=()
  # bash splits --dir=PATH into three words.
  if [[ $cur == '=' ]]; then
    cur=''
  elif [[ $prev == '=' && COMP_CWORD -gt 2 ]]; then
    prev="\${COMP_WORDS[COMP_CWORD-2]}"
  fi
  case "$prev" in
${values.join('\n')}
  esac
  if [[ COMP_CWORD -gt 1 ]]; then key="\${COMP_WORDS[1]}"; fi
  if [[ COMP_CWORD -gt 2 ]]; then
    case "$key" in ${model.groups.join('|')}) key="$key \${COMP_WORDS[2]}" ;; esac
  fi
  case "$key" in
${states.join('\n')}
  esac
  COMPREPLY=( $(IFS=' '; compgen -W "$candidates" -- "$cur") )
}
complete -F _postbote postbote
`
}

function valueLine(value: string | readonly string[]): string {
  if (value === 'path') {
    return 'compopt -o filenames 2>/dev/null; COMPREPLY=( $(compgen -f -- "$cur") )'
  }
  return typeof value === 'string'
    ? ':'
    : `COMPREPLY=( $(IFS=' '; compgen -W '${value.join(' ')}' -- "$cur") )`
}
