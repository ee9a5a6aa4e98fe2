/** `postbote completion`: prints the script with which a shell completes the commands and options of postbote. */
import { oneOf } from '../../config/config-values.ts'
import type { ParsedCommand } from '../commands/command-row.ts'

/** Each asks `postbote complete` (completions-of.ts). That of bash works from version 3.2 on. */
const scripts = {
  bash: `# Completion of postbote for bash: source <(postbote completion bash)
_postbote() {
  local IFS=$'\\n' word="\${COMP_WORDS[COMP_CWORD]#=}"
  COMPREPLY=($(postbote complete -- "\${COMP_WORDS[@]:1:COMP_CWORD-1}" "$word" 2>/dev/null | cut -f 1))
  if [[ \${COMPREPLY-} != PATH ]]; then return; fi
  compopt -o filenames 2>/dev/null
  COMPREPLY=($(compgen -f -- "$word"))
}
complete -F _postbote postbote
`,
  zsh: `#compdef postbote
# Completion of postbote for zsh: source <(postbote completion zsh)
_postbote() {
  local -a lines
  lines=(\${(f)"$(postbote complete -- "\${(@)words[2,CURRENT-1]}" "$PREFIX" 2>/dev/null)"})
  lines=(\${lines/$'\\t'/:})
  if [[ $PREFIX == --*=* ]]; then compset -P '*='; fi
  if [[ $lines[1] == PATH ]]; then _files; else _describe -t commands command lines; fi
}
if [[ $funcstack[1] == _postbote ]]; then _postbote "$@"; else compdef _postbote postbote; fi
`,
  fish: `# Completion of postbote for fish: postbote completion fish | source
function __postbote
  set -l word (commandline -ct)
  set -l option (string match -r -- '^--[^=]*=' "$word")
  for line in (postbote complete -- (commandline -opc)[2..-1] "$word" 2>/dev/null)
    if test "$line" != PATH
      echo "$option$line"
    else
      __fish_complete_path (string replace -- "$option" '' "$word") | string replace -r -- '^' "$option"
    end
  end
end
complete -c postbote -f -a '(__postbote)'
`,
} as const

const shellArgument = {
  name: '<shell>',
  kind: oneOf(['bash', 'zsh', 'fish']),
  sentence: 'bash, zsh or fish.',
} as const

export const completionCommand: ParsedCommand = {
  kind: 'parsed',
  name: 'completion',
  sentence: 'prints the script with which a shell completes commands and options',
  arguments: [shellArgument],
  options: [],
  run: async (call) => void process.stdout.write(scripts[call.need(shellArgument)]),
}
