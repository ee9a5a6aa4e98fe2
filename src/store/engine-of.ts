/** What stores the shards of this server: the files of this machine, or a database. */
import { levelEngine } from './level/level-engine.ts'
import type { PgEngineOptions } from './postgres/pg-engine-options.ts'
import type { StoreEngine } from './store-engine.ts'

/** @param database - undefined for the embedded store */
export async function engineOf(database: PgEngineOptions | undefined): Promise<StoreEngine> {
  if (database === undefined) return levelEngine
  // Imported only if it is used, because loading it takes a while.
  const { PgEngine } = await import('./postgres/pg-engine.ts')
  return new PgEngine(database)
}
