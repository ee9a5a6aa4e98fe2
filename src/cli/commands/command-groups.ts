/** The commands in groups by what they are about, for the short help. Each command is in one group. */
import type { CommandRow } from './command-row.ts'

interface CommandGroup {
  /** What `postbote help` takes. */
  readonly name: string
  /** On one line of a terminal, after the name. */
  readonly sentence: string
  /** The first words of its commands; all that begin with one of them are in the group. */
  readonly words: readonly string[]
}

/** In the order of the help. */
export const commandGroups: readonly CommandGroup[] = [
  {
    name: 'server',
    sentence: 'serve, reload; see how it fares: summary, events, history, types',
    words: ['serve', 'reload', 'summary', 'events', 'server'],
  },
  {
    name: 'cluster',
    sentence: 'servers that share databases: nodes, drain, init, import, export',
    words: ['nodes', 'node', 'database'],
  },
  {
    name: 'backup',
    sentence: 'export and import a backup; verify and repair what is stored',
    words: ['export', 'import', 'verify', 'repair'],
  },
  {
    name: 'bots',
    sentence: 'list, show, register, set, remove; give a new token',
    words: ['bots'],
  },
  {
    name: 'webhook',
    sentence: 'set, show, check, delete; attempts, pause, resume, retry, limits',
    words: ['webhook', 'attempts', 'pause', 'resume', 'retry', 'limits'],
  },
  {
    name: 'relay',
    sentence: 'take the updates of a bot from another server: set, show, remove',
    words: ['relay'],
  },
  {
    name: 'updates',
    sentence: 'push, tail; list, show, drop, erase, replay; replays, retention',
    words: ['push', 'tail', 'updates', 'retention', 'replays'],
  },
  {
    name: 'dead-letters',
    sentence: 'what could not be delivered: list, show, replay, drop',
    words: ['dead-letters'],
  },
  {
    name: 'portal',
    sentence: "links to the owner's page of a bot: create, list, revoke",
    words: ['portal'],
  },
  {
    name: 'keys',
    sentence: 'list, create, rotate, revoke; audit of what was changed',
    words: ['keys', 'audit'],
  },
  {
    name: 'tools',
    sentence: 'doctor, bench, completion of shells, version',
    words: ['doctor', 'bench', 'completion', 'version'],
  },
]

/** Returns the commands of the group with this name; none if there is no such group. */
export function commandsInGroup(rows: readonly CommandRow[], name: string): readonly CommandRow[] {
  const words = new Set(commandGroups.find((group) => group.name === name)?.words)
  return rows.filter((row) => words.has(row.name.replace(/ .*/, '')))
}
