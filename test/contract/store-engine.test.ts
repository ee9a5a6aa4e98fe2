import { levelEngine } from '../../src/store/level/level-engine.ts'
import { storeEngineContract } from './store-engine.ts'

storeEngineContract('LevelDB', levelEngine)
