/**
 * What stores the shards of this server: the files of this machine, or a database. Another store is a folder beside these
 * two and a line here.
 */
import { levelEngine } from '../store/level/level-engine.ts'
import type { PgEngineOptions } from './postgres/pg-engine.ts'
import type { StoreEngine } from '../store/store-engine.ts'

/** Which store, and what it needs to know. It is passed to every worker; undefined for the embedded store. */
export type EngineSettings = PgEngineOptions | undefined

export async function engineOf(settings: EngineSettings): Promise<StoreEngine> {
  if (settings === undefined) return levelEngine
  // Imported only if it is used, because loading it takes a while.
  const { PgEngine } = await import('./postgres/pg-engine.ts')
  return new PgEngine(settings)
}
