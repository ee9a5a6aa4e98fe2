import type { Log } from '../../../src/kit/surroundings.ts'

const ignore = (): void => undefined

/** A log that keeps nothing. */
export const silentLog: Log = { debug: ignore, info: ignore, warn: ignore, error: ignore }
