import { pageCall } from '../frame/page-calls.ts'
import type { ReadinessShape } from '../frame/shapes.ts'

/** Returns what the server says about itself; undefined if it does not respond. One that is not ready says so with 503. */
export async function readinessOf(): Promise<ReadinessShape | undefined> {
  try {
    const response = await fetch(pageCall('checkReadiness', {}).target, { cache: 'no-store' })
    const shape: ReadinessShape = await response.json()
    return shape
  } catch {
    return undefined
  }
}
