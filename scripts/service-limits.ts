/** How long a server may take to start and to stop, in milliseconds. The unit of examples/systemd allows the same. */

/** As long as a worker may take to start (`workerStartMs`), and some time for the rest. */
export const startMsMax = 150_000
/** As long as a drain may take (`drainMs`), with the steps before and after it. */
export const stopMsMax = 60_000
