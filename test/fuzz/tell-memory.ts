/**
 * Loaded into each process of the server before anything else. At SIGUSR2 it writes how much memory the program holds
 * (held-memory.ts).
 */
import { isMainThread } from 'node:worker_threads'
import { heldMemory } from '../support/kit/held-memory.ts'

if (isMainThread) {
  process.on('SIGUSR2', () => {
    process.stdout.write(`holds ${process.pid} ${Math.round(heldMemory() / 1024)}\n`)
  })
}
