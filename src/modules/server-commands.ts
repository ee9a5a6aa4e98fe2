/**
 * The commands that run a server, or work on its files and databases. Most of them read their arguments themselves, because
 * these are options of the server.
 */
import { loadIngestAddons } from '../../native-bindings/ingest-addons.ts'
import { configFileOption } from '../config/config.ts'
import { optionTable } from '../config/config-options.ts'
import { type CommandRow, serverOptions } from '../cli/commands/command-row.ts'
import { jsonOption, listOptions } from '../cli/output/view.ts'
import { nodeFields } from '../nodes/commands/node-report.ts'
import { systemClock } from '../kit/clock.ts'
import { askServer } from '../cli/serve/command-socket.ts'
import { repairCommand } from '../features/repair/repair.ts'
import { configOf } from '../cli/commands/run-command.ts'
import { serve } from './serve.ts'
import { verifyCommand } from '../features/repair/verify.ts'

const databaseOptions = [optionTable.databases, configFileOption]

export const serverCommands: readonly CommandRow[] = [
  {
    kind: 'raw',
    name: 'serve',
    synopsis: 'serve [options]',
    sentence: 'runs the server',
    options: serverOptions,
    run: (argv) => {
      const config = configOf(argv)
      loadIngestAddons()
      return serve(config, () => configOf(argv))
    },
  },
  {
    kind: 'raw',
    name: 'reload',
    synopsis: 'reload [--dir DIR]',
    sentence:
      'replaces the workers of a running server, which reads its code and options again; no request fails; returns when the reload is done',
    options: [optionTable.dir, configFileOption],
    run: (argv) => reload(configOf(argv).dir),
  },
  verifyCommand,
  repairCommand,
]

/** The client of databases is imported only when it is needed: a server without a database does not load it. */
export const databaseCommands: readonly CommandRow[] = [
  {
    kind: 'raw',
    name: 'database init',
    synopsis: 'database init --database URL [--shards 64]',
    sentence:
      'makes the tables of a new PostgreSQL database; --database may be repeated, and each database gets a part of the shards',
    options: [optionTable.shards, ...databaseOptions],
    run: async (argv) =>
      (await import('../nodes/commands/database.ts')).initDatabases(configOf(argv)),
  },
  {
    kind: 'raw',
    name: 'database import',
    synopsis: 'database import --database URL --dir DIR',
    sentence: 'copies the shards of a stopped server into an empty database',
    options: [optionTable.dir, ...databaseOptions],
    run: async (argv) =>
      (await import('../nodes/commands/database.ts')).importIntoDatabases(configOf(argv)),
  },
  {
    kind: 'raw',
    name: 'database export',
    synopsis: 'database export --database URL --dir DIR',
    sentence: 'copies the shards of a database into a new data directory',
    options: [optionTable.dir, ...databaseOptions],
    run: async (argv) =>
      (await import('../nodes/commands/database.ts')).exportDatabases(configOf(argv)),
  },
  {
    kind: 'parsed',
    name: 'nodes',
    synopsis: 'nodes --database URL',
    sentence: 'shows the servers that use each database, and which one has which shards',
    arguments: [],
    options: [...databaseOptions, jsonOption, ...listOptions(nodeFields)],
    takesServerOptions: true,
    run: async (call) => (await import('../nodes/commands/nodes.ts')).nodes(call),
  },
  {
    kind: 'raw',
    name: 'node drain',
    synopsis: 'node drain [NAME] --database URL',
    sentence:
      'moves the shards of a server to the other ones, waits until that server has ended, and fails if nobody can take them; NAME is --node-name, or else the host name',
    options: [optionTable.nodeName, ...databaseOptions],
    run: async (argv) => (await import('../nodes/commands/nodes.ts')).node('drain', argv, configOf),
  },
  {
    kind: 'raw',
    name: 'node undrain',
    synopsis: 'node undrain [NAME] --database URL',
    sentence: 'takes that back',
    options: [optionTable.nodeName, ...databaseOptions],
    run: async (argv) =>
      (await import('../nodes/commands/nodes.ts')).node('undrain', argv, configOf),
  },
]

/** Shows what the primary logs meanwhile, and returns when the reload is done. */
async function reload(directory: string): Promise<void> {
  const response = await askServer(directory, 'reload', systemClock, (step) =>
    process.stderr.write(step),
  )
  if (response === undefined) throw new Error(`no server runs on ${directory}`)
}
