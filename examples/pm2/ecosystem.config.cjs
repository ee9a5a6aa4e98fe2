/**
 * A server under pm2: `pm2 start examples/pm2/ecosystem.config.cjs` in a built checkout. The server has its own workers,
 * so pm2 runs one process of it and no cluster. Replace the workers without failing a request with
 * `pm2 sendSignal SIGHUP postbote`; `pm2 reload` would restart the server.
 */
const { join } = require('node:path')

module.exports = {
  apps: [
    {
      name: 'postbote',
      script: join(__dirname, '../../dist/src/main.js'),
      args: ['serve', '--dir', join(__dirname, '../../data')],
      exec_mode: 'fork',
      instances: 1,
      // The primary ends its workers in order; pm2 would otherwise signal all of them.
      treekill: false,
      kill_timeout: 60_000,
      // Exit code 2 means unusable options, 3 that another server has the directory, and 0 that the server was drained.
      stop_exit_codes: [0, 2, 3],
      exp_backoff_restart_delay: 100,
    },
  ],
}
