/**
 * Entry file of a thread that runs its share of the seeds. The simulations run in separate threads because the test
 * runner follows every promise of its own thread, which makes a simulation three times as slow.
 */
import assert from 'node:assert/strict'
import { parentPort, workerData } from 'node:worker_threads'
import { runSimulations } from './run-simulations.ts'

export interface SeedShare {
  readonly first: number
  readonly count: number
}

assert.ok(parentPort !== null)
// Errors are as frequent here as responses, and their stack traces are never read.
Error.stackTraceLimit = 0
// oxlint-disable-next-line unicorn/require-post-message-target-origin
parentPort.postMessage(await runSimulations(workerData as SeedShare))
