import { join } from 'node:path'
import type { ListenerKind } from '../listener.ts'

/** Returns the path at which the other workers reach a worker. It names the place, so a successor has the same path. */
export function peerSocketPath(place: {
  readonly runDir: string
  readonly worker: number
  readonly kind: ListenerKind
}): string {
  return join(place.runDir, `w${place.worker}-${place.kind}.sock`)
}
