/**
 * Entry file of a thread that runs its share of the seeds. Threads of its own because the test runner follows every
 * promise of the thread it is in, which makes a simulation three times as slow.
 */

import assert from 'node:assert/strict'
import { parentPort, workerData } from 'node:worker_threads'
import { runSimulations } from './run-simulations.ts'

export interface SeedShare {
  readonly first: number
  readonly count: number
}

assert.ok(parentPort !== null)
// Errors are as common here as answers, and nobody reads where they came from.
Error.stackTraceLimit = 0
// oxlint-disable-next-line unicorn/require-post-message-target-origin
parentPort.postMessage(await runSimulations(workerData as SeedShare))
