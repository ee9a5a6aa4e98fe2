/** The entry file of a worker process of the cluster. */
// First, because each moment counts.
import '../src/cli/serve/refuse-inspector.ts'
import { systemClock } from '../src/clock.ts'
import { prepareWorkerApp, type WorkerSettings } from '../src/app/worker-app.ts'
import { runWorker } from '../src/cluster/worker/worker.ts'
import { LogOfServer } from '../src/cli/output/log.ts'

const logOfServer = new LogOfServer()
const { log } = logOfServer

runWorker({
  clock: systemClock,
  log,
  reopenLog: () => logOfServer.reopen(),
  prepare: (start, ways) => {
    // The primary wrote these settings (cli/serve/serve.ts), and it runs the same version of the code.
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion
    const settings = start.settings as WorkerSettings
    logOfServer.use(settings.config)
    return prepareWorkerApp({ start, settings, ways, clock: systemClock, log })
  },
})
