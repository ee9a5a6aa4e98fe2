/** The complete text of docs/reference/cli.md. Pure. */
import type { OptionRow } from '../../config/config-options.ts'
import { explained, flagOf } from '../../config/config-text.ts'
import {
  type ArgumentRow,
  type CommandRow,
  isServerOption,
  optionsOf,
  serverOptionNamesOf,
  synopsisOf,
} from './command-row.ts'
import { remoteOptions } from '../remote/private-api-of.ts'
import { exitCodes } from './run-command.ts'

const remoteOptionNames = new Set<string>(remoteOptions.map(({ name }) => name))

const introduction = `# Command line

<!-- Generated from the table of commands in src/cli by scripts/generate-docs.ts: change it there. -->

This page lists the commands of \`postbote\` for operators. On a terminal, \`postbote\` shows them in groups,
\`postbote help GROUP\` lists those of a group, \`postbote help all\` lists all, and \`postbote COMMAND --help\` shows the options of one. Give an option as \`--limit 10\` or \`--limit=10\`.

## Which server

\`serve\`, \`verify\` and the other commands about files work on the data directory that \`--dir\` names. The commands about bots and their updates call
the [private API](../use/api.md) of a running server: that of \`--dir\`, which is \`./data\` without it. They ask the server of the directory, at a socket that only its user
can make, where it listens, and send the admin key nowhere else:

- If no server answers there, nothing is sent, and the command fails with \`no server runs on DIR\`, whoever listens at \`--admin-port\`.
- Whoever takes the connection must be the owner of the directory, or the user of the command: both can read the key. Otherwise nothing is sent.
- If you may not enter the directory, as with a key of your own (\`--key-file\`) and the directory of another user, \`--admin-ip-address\`, \`--admin-port\` and \`--admin-cert\`
  say where the server listens, from flags, the environment or the file of \`--config\`. The same holds for a server of a version that does not say it. If the server says it, these options need not be right.
- A server in a container has a network of its own. Run the command there (\`docker exec\`, \`kubectl exec\`), or use \`--url\`.

For a server on another machine, or in a container, give its URL and a file with one of its [keys](../use/api.md#keys). The private API should not be reachable from outside, so use an SSH
tunnel or a reverse proxy with TLS:

\`\`\`sh
ssh -N -L 9082:127.0.0.1:8082 server &
postbote bots list --url http://127.0.0.1:9082 --key-file ./server.key
\`\`\`

With \`--url\`, the options of the server on this machine do not count, whatever the environment or the file of \`--config\` says, and \`--key-file\` is required: the key of one server never goes to
another unless you say so (\`--key-file data/admin.key\`). Nobody can see who listens at a URL: with \`http\`, the key goes to whoever does. A redirect is not followed.
If no authority that Node.js knows has signed the certificate of the other server, name a file with its authority in \`NODE_EXTRA_CA_CERTS\`.

A response that is not of the private API, such as that of another program, is an error of one sentence, and no result.

## Output

Results are on standard output. Errors, remarks and the progress of long work are on standard error. Without \`--json\`, results are text for
people, which may change from version to version. Dates are in UTC. With \`--json\`, a command prints the JSON of the private
API, whose fields [api.md](../use/api.md) describes. \`bots list\` joins the pages that it reads into one object. \`tail\` prints one object for each event on a line of its own: the data of the event, and its name as \`event\`. \`doctor\` prints \`{"findings":[{"level":"good","text":"..."}]}\`, where the level is \`good\`, \`warn\` or \`bad\`. \`verify\`
prints \`{"damages":0,"lines":["..."]}\` and \`repair\` prints \`{"failed_shards":[],"lines":["..."]}\`, with the lines that they print for people.

A list is a table, or CSV with \`--output csv\`; \`--output json\` is \`--json\`. At a terminal, a table is no wider than the terminal: the columns are in the order of their importance, and the last ones are left out,
which the command says on standard error. Names are cut at their end with \`…\`, and nothing else is: an error that has no place in its row stands below it. Times are ages, such as \`12 s ago\`. \`--wide\` shows every field, whole,
and times as dates, and \`--columns bot_id,health_reason\` shows these fields, by the names that JSON has. In a pipe, nothing is left out or cut, and times are dates. CSV has every field, unless \`--columns\` names some; its first
line has their names, and a text that a spreadsheet would take for a formula has an apostrophe before it.

One thing, such as \`bots show\`, has its fields on lines, below a sentence that says what is wrong with it. At a terminal, fields without a value are left out.

If the reader of a pipe ends early, as in \`postbote bots list | head -3\`, the command finishes without an error.

\`bots list --state stuck --sort oldest_age\` answers which bots need attention. [api.md](../use/api.md#all-bots) explains the states. The columns are about the main queue of a bot:
\`oldest\` is the age of the oldest pending update, \`health_reason\` says what is wrong, and \`health\` the [health](../use/api.md#why-nothing-arrives) of the queue, or \`paused\`. A \`-\` is for no value.

\`tail\` shows what is pushed to a bot and confirmed from now on, and reads nothing out of the queue. When the server restarts or reloads, it says so on standard error and connects again;
what happens in between is not shown. It ends by SIGINT (Ctrl+C), with exit code 0, or with 4 if the server refuses the tail.

## Times

Where a command takes a time, such as \`--since\`, it takes any of these. Without a zone, a time is in UTC, as all that commands print:

| time | means |
|---|---|
| \`90s\`, \`10m\`, \`2h\`, \`3d\` | so long before now; \`3 min ago\`, as commands print it, too |
| \`now\`, \`today\`, \`yesterday\` | now, or the beginning of the day |
| \`today 09:30\`, \`yesterday 14:00\` | a time of that day |
| \`14:00\`, \`14:00:30\` | the last time that it was so late |
| \`2026-11-23\`, \`2026-11-23 08:15\`, \`2026-11-23T08:15:00+02:00\` | ISO 8601, with a zone or without |
| \`1795259014\` | Unix seconds |

A time that cannot be meant is refused with what it was taken for, such as one in milliseconds, more than a year ahead or before 2000. [options.md](options.md) says how durations, such as
\`--ttl 2h\`, and sizes, such as \`--retain-bytes 64M\`, are given.

## Exit codes
`

const completion = `## Shell completion

\`\`\`sh
source <(postbote completion bash)                                            # in ~/.bashrc
source <(postbote completion zsh)                                             # in ~/.zshrc, after compinit
postbote completion fish > ~/.config/fish/completions/postbote.fish           # once
\`\`\`

At each Tab, the script asks the \`postbote\` of your \`PATH\` for what may come next. No server is asked, so ids and names of bots are not completed.
`

/** Returns the page. */
export function commandsPage(rows: readonly CommandRow[]): string {
  const codes = [...exitCodes].map(([code, meaning]) => `| ${code} | ${meaning} |`)
  const lines = [
    introduction,
    '| code | meaning |',
    '|---|---|',
    ...codes,
    '',
    completion,
    '## Options of commands that call a server',
    '',
    'All commands below that say so take these:',
    '',
    ...remoteOptions.map(optionLine),
    '',
    '## Commands',
    ...rows.flatMap(commandLines),
  ]
  return `${lines.join('\n')}\n`
}

function commandLines(row: CommandRow): readonly string[] {
  const own = row.options.filter((option) => !isServerOption(option))
  const isRemote = own.some(({ name }) => remoteOptionNames.has(name) && name !== 'json')
  const shown = own.filter(({ name }) => !isRemote || !remoteOptionNames.has(name))
  const values = row.kind === 'parsed' ? row.arguments : []
  const others = isRemote
    ? '[Calls a server](#options-of-commands-that-call-a-server).'
    : `Takes ${serverOptionsOf(row)}.`
  const takesOthers = isRemote || optionsOf(row).length > own.length
  const lines = [...values.map(argumentLine), ...shown.map(optionLine)]
  return [
    '',
    `### ${row.name}`,
    '',
    `\`postbote ${synopsisOf(row)}\` ${row.sentence}.${takesOthers ? ` ${others}` : ''}`,
    ...(lines.length === 0 ? [] : ['', ...lines]),
  ]
}

/** A few options of the server are named. */
function serverOptionsOf(row: CommandRow): string {
  const names = serverOptionNamesOf(row)
  if (names.length > serverOptionsNamedMax) return 'the [options of the server](options.md)'
  const last = names.map((name) => `\`--${name}\``).join(', ')
  return `${last.replace(/, (\S+)$/, ' and $1')} of the [options of the server](options.md)`
}

const serverOptionsNamedMax = 5

function optionLine(row: OptionRow): string {
  return `- \`${flagOf(row)}\`: ${explained(row)}`
}

function argumentLine({ name, kind, sentence }: ArgumentRow): string {
  return `- \`${name}\`: ${sentence} Expected: ${kind.expected}.`
}
