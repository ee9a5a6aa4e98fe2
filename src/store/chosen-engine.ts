import { levelEngine } from './level/level-engine.ts'
import type { StoreEngine } from './store-engine.ts'

/** What stores the shards of this server. */
export const chosenEngine: StoreEngine = levelEngine
