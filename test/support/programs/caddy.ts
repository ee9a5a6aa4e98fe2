/**
 * A real Caddy on loopback with the configuration that docs/run/reverse-proxy.md explains. Only addresses, certificates and
 * what a test may not share with the machine are replaced, in place.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { freePort } from '../kit/port.ts'
import { programObstacle } from '../kit/program-obstacle.ts'
import { temporaryDirectory } from '../kit/temporary-directory.ts'
import type { KeyPair } from '../network/certificates.ts'
import type { EndingTest } from '../server/server.ts'
import {
  botsHost,
  endProxy,
  proxyCertificate,
  pushHost,
  replaceAll,
  type TlsProxy,
  untilStarted,
} from './tls-proxy.ts'

const documented = new URL('../../../../docs/run/Caddyfile', import.meta.url)
const startMsMax = 20_000
const run = promisify(execFile)

/** Why Caddy is not available; false if it is. */
export function caddyObstacle(): string | false {
  return programObstacle('caddy') && 'caddy is not installed: ./scripts/install-test-tools'
}

export class Caddy implements TlsProxy {
  readonly botsPort: number
  readonly pushPort: number
  readonly certificate: KeyPair = proxyCertificate()
  readonly #directory: string
  readonly #child: ChildProcess
  #log = ''

  /** @param upstreams - the listeners of a server, as `host:port` */
  static async start(
    t: EndingTest,
    upstreams: { readonly bots: string; readonly private: string },
  ): Promise<Caddy> {
    const caddy = new Caddy(temporaryDirectory(t), {
      bots: await freePort(),
      push: await freePort(),
      upstreams,
    })
    t.after(() => endProxy(caddy.#child, 'SIGKILL'))
    await untilStarted(caddy.#child, {
      port: caddy.pushPort,
      limitMs: startMsMax,
      log: () => caddy.#log,
    })
    return caddy
  }

  private constructor(
    directory: string,
    options: {
      readonly bots: number
      readonly push: number
      readonly upstreams: { readonly bots: string; readonly private: string }
    },
  ) {
    this.#directory = directory
    this.botsPort = options.bots
    this.pushPort = options.push
    const file = (name: string): string => join(directory, name)
    writeFileSync(file('cert.pem'), this.certificate.cert)
    writeFileSync(file('key.pem'), this.certificate.key)
    const site = (address: string): string =>
      `${address} {\n\tbind 127.0.0.1\n\ttls ${file('cert.pem')} ${file('key.pem')}\n`
    const text = replaceAll(readFileSync(documented, 'utf8'), {
      '\tservers {': `\tadmin unix/${file('admin.sock')}\n\tauto_https off\n\thttps_port ${this.botsPort}\n\tservers {`,
      [`${botsHost} {\n`]: site(botsHost),
      [`${pushHost}:8443 {\n`]: site(`https://${pushHost}:${this.pushPort}`),
      '/var/log/caddy/': `${directory}/`,
      '127.0.0.1:8081': options.upstreams.bots,
      '127.0.0.1:8082': options.upstreams.private,
    })
    writeFileSync(file('Caddyfile'), text)
    this.#child = spawn('caddy', ['run', '--config', file('Caddyfile'), '--adapter', 'caddyfile'], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, XDG_DATA_HOME: directory, XDG_CONFIG_HOME: directory },
    })
    for (const stream of [this.#child.stdout, this.#child.stderr])
      stream?.on('data', (bytes: Buffer) => (this.#log += bytes.toString()))
  }

  /** Reloads the configuration, as `systemctl reload caddy` does, even if it is as before. */
  async reload(): Promise<void> {
    const address = `unix/${join(this.#directory, 'admin.sock')}`
    const file = join(this.#directory, 'Caddyfile')
    const flags = ['--config', file, '--adapter', 'caddyfile', '--address', address, '--force']
    await run('caddy', ['reload', ...flags])
  }

  /** Returns everything that Caddy has logged. */
  log(): string {
    return this.#log + readFileSync(join(this.#directory, 'postbote.log'), 'utf8')
  }
}
