/** A real HTTP proxy on loopback: tinyproxy, which scripts/install-test-tools installs. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { temporaryDirectory } from '../kit/temporary-directory.ts'
import { freePort } from '../kit/port.ts'

export interface TinyproxyOptions {
  /** `name password` */
  readonly credentials?: string
  /** The only port that it opens tunnels to. */
  readonly onlyPort?: number
}

/** Why the proxy is not available; undefined if it is. */
export function proxyObstacle(): string | undefined {
  const { error } = spawnSync('tinyproxy', ['-v'])
  return error === undefined
    ? undefined
    : 'tinyproxy is not installed: ./scripts/install-test-tools'
}

/** A place at which a proxy runs or does not run. */
export class Tinyproxy {
  /** Differs from the address of endpoints in tests, so that the two can be distinguished. */
  readonly host = '127.0.0.2'
  readonly port: number
  readonly #file: string
  #child: ChildProcess | undefined
  #log = ''

  static async start(t: TestContext, options: TinyproxyOptions = {}): Promise<Tinyproxy> {
    const proxy = new Tinyproxy(t, await freePort(), options)
    t.after(() => proxy.stop())
    await proxy.run()
    return proxy
  }

  private constructor(t: TestContext, port: number, { credentials, onlyPort }: TinyproxyOptions) {
    this.port = port
    this.#file = join(temporaryDirectory(t), 'tinyproxy.conf')
    const lines = [
      `Port ${port}`,
      `Listen ${this.host}`,
      'Timeout 60',
      'MaxClients 100',
      'LogLevel Info',
      ...(credentials === undefined ? [] : [`BasicAuth ${credentials}`]),
      ...(onlyPort === undefined ? [] : [`ConnectPort ${onlyPort}`]),
    ]
    writeFileSync(this.#file, `${lines.join('\n')}\n`)
  }

  /** The addresses that clients asked it to connect to, as they were written. */
  get targets(): readonly string[] {
    return Array.from(this.#log.matchAll(/: CONNECT (\S+) HTTP/g), ([, target = '']) => target)
  }

  async run(): Promise<void> {
    const child = spawn('tinyproxy', ['-d', '-c', this.#file], {
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    this.#child = child
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => {
        this.#log += text
        child.emit('said')
      })
    }
    const start = this.#log.length
    while (!this.#log.includes('Accepting connections', start)) {
      await Promise.race([once(child, 'said'), once(child, 'exit')])
      if (child.exitCode !== null) throw new Error(`tinyproxy ended: ${this.#log}`)
    }
  }

  /** Its tunnels end with it. */
  async stop(): Promise<void> {
    const child = this.#child
    this.#child = undefined
    if (child === undefined || child.exitCode !== null) return
    const gone = once(child, 'exit')
    child.kill('SIGKILL')
    await gone
  }
}
