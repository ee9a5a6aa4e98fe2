/** The entry file of a worker process of the cluster. */
// First, because each moment counts.
import '../src/cli/serve/refuse-inspector.ts'
import { systemClock } from '../src/kit/clock.ts'
import { prepareWorkerApp, type WorkerSettings } from '../src/modules/worker-app.ts'
import { withNewOptions } from '../src/config/config.ts'
import { runWorker } from '../src/worker/worker.ts'
import { LogOfServer } from '../src/cli/output/log.ts'

const logOfServer = new LogOfServer()
const { log } = logOfServer

runWorker({
  clock: systemClock,
  log,
  reopenLog: () => logOfServer.reopen(),
  prepare: (start, ways) => {
    // The primary wrote these settings (modules/serve.ts). It may have an earlier version of the code, as after an upgrade.
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion
    const given = start.settings as WorkerSettings
    const {
      config,
      addedTypes = [],
      certificates = {},
    } = given as Pick<WorkerSettings, 'config'> & Partial<WorkerSettings>
    const known = { addedTypes, certificates }
    const settings = { ...given, ...known, config: withNewOptions(config) }
    logOfServer.use(settings.config)
    return prepareWorkerApp({ start, settings, ways, clock: systemClock, log })
  },
})
