/** The short help: where to begin in trouble, and the commands in groups by what they are about. Each command is in one group. */
import type { CommandRow } from '../cli/commands/command-row.ts'
import type { CommandGroup, ShortHelp } from '../cli/commands/help-text.ts'

/** What an operator in trouble types, and what it shows, from all bots to one. */
const firstCommands: ShortHelp['firstCommands'] = [
  ['summary', 'how many bots fail, and what waits'],
  ['bots list --problems', 'which bots need help, and why'],
  ['bots show BOT_ID', 'what is wrong with a bot'],
  ['attempts BOT_ID', 'what its endpoint has answered'],
  ['events', 'what went wrong last, and goes wrong now'],
  ['audit', 'who has changed something'],
]

/** A group, with the first words of its commands; all that begin with one of them are in the group. */
type NamedGroup = CommandGroup & { readonly words: readonly string[] }

/** In the order of the help. */
export const commandGroups: readonly NamedGroup[] = [
  {
    name: 'server',
    sentence: 'serve, reload; summary, events, history, types',
    words: ['serve', 'reload', 'summary', 'events', 'server'],
  },
  {
    name: 'cluster',
    sentence: 'nodes, node drain; database init, import, export',
    words: ['nodes', 'node', 'database'],
  },
  {
    name: 'backup',
    sentence: 'export, import; verify and repair what is stored',
    words: ['export', 'import', 'verify', 'repair'],
  },
  {
    name: 'bots',
    sentence: 'list, show, register, set, remove, token',
    words: ['bots'],
  },
  {
    name: 'webhook',
    sentence: 'set, show, check, delete; attempts, pause, retry',
    words: ['webhook', 'attempts', 'pause', 'resume', 'retry', 'limits'],
  },
  {
    name: 'relay',
    sentence: 'updates from another server: set, show, remove',
    words: ['relay'],
  },
  {
    name: 'updates',
    sentence: 'push, tail; list, show, drop, erase, replay',
    words: ['push', 'tail', 'updates', 'retention', 'replays'],
  },
  {
    name: 'dead-letters',
    sentence: 'what was not delivered: list, show, replay, drop',
    words: ['dead-letters'],
  },
  {
    name: 'portal',
    sentence: "links to the owner's page: create, list, revoke",
    words: ['portal'],
  },
  {
    name: 'keys',
    sentence: 'list, create, rotate, revoke; audit of changes',
    words: ['keys', 'audit'],
  },
  {
    name: 'tools',
    sentence: 'doctor, bench, completion of shells, version',
    words: ['doctor', 'bench', 'completion', 'version'],
  },
]

export const shortHelp: ShortHelp = { firstCommands, groups: commandGroups }

/** Returns a command with the name of its group. */
export function inItsGroup(row: CommandRow): CommandRow {
  const [word = ''] = row.name.split(' ')
  const group = commandGroups.find(({ words }) => words.includes(word))?.name
  return group === undefined ? row : { ...row, group }
}
