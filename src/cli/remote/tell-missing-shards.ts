import { tell } from './print-result.ts'

/** Says which shards a result about all bots does not cover, if there are any; the command then fails. */
export function tellMissingShards({
  missing_shards: missing = [],
}: {
  readonly missing_shards?: readonly number[] | undefined
}): void {
  if (missing.length === 0) return
  tell(`the bots of these shards are missing, because no worker has them: ${missing.join(', ')}`)
  process.exitCode = 1
}
