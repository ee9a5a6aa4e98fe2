import { join } from 'node:path'

/**
 * Returns the path at which the other workers reach a worker with their links. It names the place, so a successor has the
 * same path.
 */
export function linkSocketPath(place: {
  readonly runDir: string
  readonly worker: number
}): string {
  return join(place.runDir, `w${place.worker}-link.sock`)
}
