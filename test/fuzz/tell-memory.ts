/**
 * Loaded into each process of the server before anything else. At SIGUSR2 it writes how much memory the program holds
 * after a garbage collection. The size of the process, which includes garbage, says too little.
 */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { isMainThread } from 'node:worker_threads'

if (isMainThread) {
  setFlagsFromString('--expose-gc')
  const collect: unknown = runInNewContext('gc')
  process.on('SIGUSR2', () => {
    if (typeof collect === 'function') collect()
    const { heapUsed, external } = process.memoryUsage()
    process.stdout.write(`holds ${process.pid} ${Math.round((heapUsed + external) / 1024)}\n`)
  })
}
