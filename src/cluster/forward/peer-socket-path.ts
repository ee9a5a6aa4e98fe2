import { join } from 'node:path'
import type { ListenerKind } from '../listener.ts'

/** Where the other workers reach a worker; the place, not the process: a successor has the same path. */
export function peerSocketPath(place: {
  readonly runDir: string
  readonly worker: number
  readonly kind: ListenerKind
}): string {
  return join(place.runDir, `w${place.worker}-${place.kind}.sock`)
}
