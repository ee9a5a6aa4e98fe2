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
      args: ['serve'],
      // npm replaces an installed package as a whole, so its data belongs elsewhere: set POSTBOTE_DIR.
      env: { POSTBOTE_DIR: process.env.POSTBOTE_DIR ?? join(__dirname, '../../data') },
      exec_mode: 'fork',
      instances: 1,
      // The primary ends its workers in order; pm2 would otherwise signal all of them.
      treekill: false,
      kill_timeout: 60_000,
      // pm2 starts the server again after every end that it did not order, at first soon and then every 15 s. Do not add
      // stop_exit_codes: pm2 takes a server that was killed by a signal for one that ended with code 0.
      exp_backoff_restart_delay: 100,
    },
  ],
}
