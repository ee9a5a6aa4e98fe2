/** A real haproxy on loopback with the configuration of docs/run/cluster-haproxy.cfg, in which only addresses and paths differ. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { KeyPair } from '../network/certificates.ts'
import type { EndingTest } from '../server/server.ts'
import { temporaryDirectory } from '../kit/temporary-directory.ts'
import { freePort } from '../kit/port.ts'
import { endProxy, proxyCertificate, replaceAll, type TlsProxy, untilStarted } from './tls-proxy.ts'

const documented = new URL('../../../../docs/run/cluster-haproxy.cfg', import.meta.url)
const startMsMax = 20_000

/** Why haproxy is not available; undefined if it is. */
export function haproxyObstacle(): string | undefined {
  const { error } = spawnSync('haproxy', ['-v'])
  return error === undefined ? undefined : 'haproxy is not installed: ./scripts/install-test-tools'
}

export class Haproxy implements TlsProxy {
  readonly botsPort: number
  readonly pushPort: number
  readonly certificate: KeyPair = proxyCertificate()
  #log = ''
  #child: ChildProcess | undefined

  /** @param edit - further changes to the configuration, which must replace the addresses of the nodes */
  static async start(t: EndingTest, edit: (text: string) => string): Promise<Haproxy> {
    const haproxy = new Haproxy({ bots: await freePort(), push: await freePort() })
    // Hooks run in order, so haproxy ends before its directory is removed.
    t.after(() => haproxy.stop())
    await haproxy.#run(temporaryDirectory(t), edit)
    return haproxy
  }

  private constructor(ports: { readonly bots: number; readonly push: number }) {
    this.botsPort = ports.bots
    this.pushPort = ports.push
  }

  /** Returns everything that haproxy has logged. */
  log(): string {
    return this.#log
  }

  async stop(): Promise<void> {
    const child = this.#child
    this.#child = undefined
    await endProxy(child, 'SIGKILL')
  }

  async #run(directory: string, edit: (text: string) => string): Promise<void> {
    const file = (name: string): string => join(directory, name)
    writeFileSync(file('pair.pem'), this.certificate.cert + this.certificate.key)
    const text = replaceAll(edit(readFileSync(documented, 'utf8')), {
      'log /dev/log local0': 'log stdout format raw local0',
      // What a test may open.
      'maxconn 50000': 'maxconn 4000',
      'bind :443 ': `bind 127.0.0.1:${this.botsPort} `,
      'bind :8443 ': `bind 127.0.0.1:${this.pushPort} `,
      '/etc/ssl/bots.example.com.pem': file('pair.pem'),
    })
    writeFileSync(file('haproxy.cfg'), text)
    const child = spawn('haproxy', ['-db', '-f', file('haproxy.cfg')], {
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    this.#child = child
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (chunk: Buffer) => (this.#log += chunk.toString()))
    }
    await untilStarted(child, { port: this.pushPort, limitMs: startMsMax, log: () => this.#log })
  }
}
