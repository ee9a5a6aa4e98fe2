/** All commands. Dispatch, `--help`, docs/reference/cli.md and the shell completions are derived from this table. */
import { benchCommand } from '../cli/commands/bench-command.ts'
import { completionCommand } from '../cli/completion/completion-command.ts'
import type { Config } from '../config/config.ts'
import type { Examined } from '../cli/doctor/examine-machine.ts'
import type { CommandRow } from '../cli/commands/command-row.ts'
import { doctorCommand } from '../cli/doctor/doctor-command.ts'
import { type DatabaseImport, importCommand } from '../features/backup/import-command.ts'
import { auditCommand, keysCommands } from '../features/keys/keys-commands.ts'
import { botsCommands } from '../features/bots/bots-commands.ts'
import { deadLettersCommands } from '../features/look-back/dead-letters-commands.ts'
import { eventsCommand } from '../features/events/events-command.ts'
import { exportCommand } from '../features/backup/export-command.ts'
import { typesCommand, historyCommand } from '../features/server/history-command.ts'
import { portalCommands } from '../features/portal/portal-commands.ts'
import { queueCommands } from '../features/bots/queue-commands.ts'
import { relayCommands } from '../features/relay/relay-commands.ts'
import { replaysCommands } from '../features/look-back/replays-commands.ts'
import { summaryCommand } from '../features/fleet/summary-command.ts'
import { listBotsCommand } from '../features/fleet/list-bots-command.ts'
import { tailCommand } from '../features/tail/tail-command.ts'
import { updatesCommands } from '../features/look-back/updates-commands.ts'
import { webhookCommands } from '../features/bots/webhook-commands.ts'
import { inItsGroup } from './command-groups.ts'
import { databaseCommands, serverCommands } from './server-commands.ts'
import { versionCommand } from '../cli/commands/version-command.ts'
import { pushCommand } from '../features/ingest/push-command.ts'

/** In the order in which the help lists them. */
const commands: readonly CommandRow[] = [
  ...serverCommands,
  exportCommand,
  importCommand(importBackup),
  ...databaseCommands,
  doctorCommand(examineDatabases),
  benchCommand,
  listBotsCommand,
  ...botsCommands,
  summaryCommand,
  historyCommand,
  typesCommand,
  ...webhookCommands,
  ...relayCommands,
  pushCommand,
  ...queueCommands,
  tailCommand,
  ...updatesCommands,
  ...replaysCommands,
  ...deadLettersCommands,
  eventsCommand,
  ...portalCommands,
  ...keysCommands,
  auditCommand,
  completionCommand,
  versionCommand,
]

export const commandTable: readonly CommandRow[] = commands.map(inItsGroup)

// Without a database, a command does not load the client of databases.

async function importBackup<Result>(order: DatabaseImport<Result>): Promise<Result> {
  const nodes = await import('../nodes/commands/cluster-databases.ts')
  return nodes.importBackup(order)
}

async function examineDatabases(config: Config): Promise<readonly Examined[]> {
  const nodes = await import('../nodes/commands/examine-databases.ts')
  return nodes.examineDatabases(config)
}
