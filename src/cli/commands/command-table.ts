/** All commands. Dispatch, `--help`, docs/reference/cli.md and the shell completions are derived from this table. */
import { benchCommand } from './bench-command.ts'
import { completionCommand } from '../completion/completion-command.ts'
import type { CommandRow } from './command-row.ts'
import { doctorCommand } from '../doctor/doctor-command.ts'
import { importCommand } from '../files/import-command.ts'
import { auditCommand } from '../remote/audit-command.ts'
import { botsCommands } from '../remote/bots-commands.ts'
import { deadLettersCommands } from '../remote/dead-letters-commands.ts'
import { eventsCommand } from '../remote/events-command.ts'
import { exportCommand } from '../files/export-command.ts'
import { typesCommand } from '../remote/types-command.ts'
import { historyCommand } from '../remote/history-command.ts'
import { keysCommands } from '../remote/keys-commands.ts'
import { portalCommands } from '../remote/portal-commands.ts'
import { queueCommands } from '../remote/queue-commands.ts'
import { relayCommands } from '../remote/relay-commands.ts'
import { replaysCommands } from '../remote/replays-commands.ts'
import { summaryCommand } from '../remote/summary-command.ts'
import { tailCommand } from '../remote/tail-command.ts'
import { updatesCommands } from '../remote/updates-commands.ts'
import { webhookCommands } from '../remote/webhook-commands.ts'
import { databaseCommands, serverCommands } from './server-commands.ts'

/** In the order in which the help lists them. */
export const commandTable: readonly CommandRow[] = [
  ...serverCommands,
  exportCommand,
  importCommand,
  ...databaseCommands,
  doctorCommand,
  benchCommand,
  ...botsCommands,
  summaryCommand,
  historyCommand,
  typesCommand,
  ...webhookCommands,
  ...relayCommands,
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
]
