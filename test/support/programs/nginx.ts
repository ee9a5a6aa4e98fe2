/**
 * A real nginx on loopback with the configuration that docs/run/reverse-proxy.md explains. Only addresses and paths are
 * replaced, in place, so that the documentation cannot differ from what is tested.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { KeyPair } from '../network/certificates.ts'
import type { EndingTest } from '../server/server.ts'
import { temporaryDirectory } from '../kit/temporary-directory.ts'
import { freePort } from '../kit/port.ts'
import { endProxy, proxyCertificate, replaceAll, type TlsProxy, untilStarted } from './tls-proxy.ts'

export interface Upstreams {
  /** An upstream address of nginx: `127.0.0.1:8081` or `unix:/path`. It is left out if `edit` replaces the upstreams. */
  readonly bots?: string
  readonly private?: string
  /** Further changes to the configuration. */
  readonly edit?: (site: string) => string
}

const documented = new URL('../../../../docs/run/nginx.conf', import.meta.url)
const startMsMax = 20_000

/** Why nginx is not available; undefined if it is. */
export function nginxObstacle(): string | undefined {
  const { error } = spawnSync('nginx', ['-v'])
  return error === undefined ? undefined : 'nginx is not installed: ./scripts/install-test-tools'
}

export class Nginx implements TlsProxy {
  readonly botsPort: number
  readonly pushPort: number
  readonly certificate: KeyPair = proxyCertificate()
  readonly #directory: string
  #child: ChildProcess | undefined

  static async start(t: EndingTest, upstreams: Upstreams): Promise<Nginx> {
    const ports = { bots: await freePort(), push: await freePort() }
    // Hooks run in order, so nginx ends before its directory is removed.
    t.after(() => nginx.stop())
    const nginx = new Nginx(temporaryDirectory(t), ports)
    nginx.#configure(upstreams)
    await nginx.#run()
    return nginx
  }

  private constructor(directory: string, ports: { readonly bots: number; readonly push: number }) {
    this.#directory = directory
    this.botsPort = ports.bots
    this.pushPort = ports.push
  }

  /** Returns everything that nginx has logged. */
  log(): string {
    return readdirSync(this.#directory)
      .filter((name) => name.endsWith('.log'))
      .map((name) => readFileSync(join(this.#directory, name), 'utf8'))
      .join('\n')
  }

  /** Reloads as `nginx -s reload` does: new workers start, and the old ones end with their last request. */
  reload(): void {
    this.#child?.kill('SIGHUP')
  }

  async stop(): Promise<void> {
    const child = this.#child
    this.#child = undefined
    // SIGKILL would leave its workers running.
    await endProxy(child, 'SIGTERM')
  }

  #configure({ bots, private: own, edit = (site) => site }: Upstreams): void {
    const file = (name: string): string => join(this.#directory, name)
    writeFileSync(file('cert.pem'), this.certificate.cert)
    writeFileSync(file('key.pem'), this.certificate.key)
    const site = replaceAll(edit(readFileSync(documented, 'utf8')), {
      ...(bots === undefined ? {} : { '127.0.0.1:8081': bots }),
      ...(own === undefined ? {} : { '127.0.0.1:8082': own }),
      'listen 443 ': `listen 127.0.0.1:${this.botsPort} `,
      'listen 8443 ': `listen 127.0.0.1:${this.pushPort} `,
      '/etc/ssl/bots.example.com.pem': file('cert.pem'),
      '/etc/ssl/bots.example.com.key': file('key.pem'),
      '/var/log/nginx/': `${this.#directory}/`,
    })
    writeFileSync(file('site.conf'), site)
    const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
      .map((name) => `${name}_temp_path ${file(name)};`)
      .join('\n')
    // The surroundings of a site in a system's nginx.conf. With root, the workers' directory would have to belong to root.
    const user = process.getuid?.() === 0 ? 'user root root;' : ''
    writeFileSync(
      file('nginx.conf'),
      `daemon off; worker_processes 2; pid ${file('nginx.pid')}; error_log ${file('start.log')}; ${user}
events { worker_connections 8192; }
http { ${temporary}
include ${file('site.conf')}; }
`,
    )
  }

  async #run(): Promise<void> {
    const directory = this.#directory
    const args = [
      '-p',
      directory,
      '-c',
      join(directory, 'nginx.conf'),
      '-e',
      join(directory, 'start.log'),
    ]
    const child = spawn('nginx', args, { stdio: 'inherit' })
    this.#child = child
    await untilStarted(child, {
      port: this.pushPort,
      limitMs: startMsMax,
      log: () => (existsSync(join(directory, 'start.log')) ? this.log() : ''),
    })
  }
}
