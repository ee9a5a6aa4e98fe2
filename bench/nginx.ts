/** The common yardstick: nginx with `return 200`, its own configuration, a loopback port, and one process per CPU. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { mkdtemp, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import type { CaseContext, CpuUsByProcess } from './contestant.ts'
import { isOpen } from '../test/support/kit/is-open.ts'
import { cpuUsOf, processTree } from './process-cpu.ts'

/** nginx accepts no longer text in its configuration, but it concatenates variables. */
const textBytesMax = 2_048
const startAttemptsMax = 100

export class Nginx {
  readonly #child: ChildProcess
  readonly port: number

  private constructor(child: ChildProcess, port: number) {
    this.#child = child
    this.port = port
  }

  static isInstalled(): boolean {
    return spawnSync('nginx', ['-v']).error === undefined
  }

  static async start(context: CaseContext, bodyBytes: number): Promise<Nginx> {
    const port = await freePort()
    const directory = await mkdtemp(join(context.directory, 'nginx-'))
    const file = join(directory, 'nginx.conf')
    await writeFile(file, configuration({ ...context, directory, bodyBytes, port }))
    const child = spawn('nginx', ['-p', directory, '-c', file], { stdio: 'inherit' })
    await answering(child, port)
    const server = new Nginx(child, port)
    context.atEnd(() => server.#close())
    return server
  }

  cpuUsByProcess(): CpuUsByProcess {
    return { nginx: cpuUsOf(processTree(this.#child.pid ?? 0)) }
  }

  async #close(): Promise<void> {
    if (this.#child.exitCode !== null) return
    const exited = new Promise<void>((resolve) => this.#child.once('exit', () => resolve()))
    this.#child.kill('SIGTERM')
    await exited
  }
}

function configuration(options: {
  readonly directory: string
  readonly workers: number
  readonly bodyBytes: number
  readonly port: number
}): string {
  const { directory, workers, bodyBytes, port } = options
  const whole = Math.floor(bodyBytes / textBytesMax)
  const body = '${part}'.repeat(whole) + 'x'.repeat(bodyBytes % textBytesMax)
  const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
    .map((name) => `${name}_temp_path ${directory}/${name};`)
    .join(' ')
  return `daemon off; worker_processes ${workers}; pid ${directory}/nginx.pid; error_log ${directory}/error.log;
events { worker_connections 512; }
http { access_log off; ${paths} keepalive_requests 1000000000; keepalive_timeout 80s; tcp_nodelay on;
server { listen 127.0.0.1:${port}; default_type application/json; set $part "${'x'.repeat(textBytesMax)}";
location / { return 200 "${body}"; } } }
`
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.on('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const address = server.address()
      const port = typeof address === 'object' ? (address?.port ?? 0) : 0
      server.close(() => resolve(port))
    })
  })
}

async function answering(child: ChildProcess, port: number): Promise<void> {
  for (let attempt = 0; attempt < startAttemptsMax; attempt++) {
    if (child.exitCode !== null) break
    if (await isOpen(port)) return
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  child.kill('SIGTERM')
  throw new Error('nginx did not start')
}
