/** The image that scripts/test-image has built, and podman with the store where it is. */
import { execFile, spawnSync } from 'node:child_process'
import { promisify } from 'node:util'
import { Dockerfile } from '../../../scripts/packing/dockerfile.ts'
import { root } from '../server/package-user.ts'

const store = process.env['POSTBOTE_IMAGE_STORE'] ?? ''
const builtImage = 'localhost/postbote'

/** Why there is no image; false if there is one. */
export function builtImageObstacle(): string | false {
  return store === '' && 'needs the image that `npm run test:image` builds'
}

function inStore(args: readonly string[]): string[] {
  return ['--root', `${store}/storage`, '--runroot', `${store}/run`, ...args]
}

/** Returns the output of a command of podman; rejects if it fails. */
export async function podman(...args: readonly string[]): Promise<string> {
  const { stdout } = await promisify(execFile)('podman', inStore(args))
  return stdout.trim()
}

/** A container that runs the image as docs/run/install.md says, with its data in a volume. */
export class Container {
  readonly name: string
  readonly #volume: string

  constructor({ name, volume }: { readonly name: string; readonly volume: string }) {
    this.name = name
    this.#volume = volume
  }

  async start(): Promise<void> {
    const limits = ['--stop-timeout', '60', '--read-only', '--cap-drop', 'ALL']
    const ports = ['-p', '127.0.0.1::8081', '-p', '127.0.0.1::8082']
    const data = ['-v', `${this.#volume}:/data`]
    const options = [...limits, ...ports, ...data, ...healthOptions()]
    await podman('run', '--detach', '--name', this.name, ...options, builtImage)
  }

  /** The URL, outside of the container, of one of its ports. */
  async url(port: number): Promise<string> {
    return `http://${await podman('port', this.name, `${port}`)}`
  }

  /** Runs a program in the container. */
  exec(...command: readonly string[]): Promise<string> {
    return podman('exec', this.name, ...command)
  }

  /** Runs the health check of the image. */
  isHealthy(): boolean {
    return spawnSync('podman', inStore(['healthcheck', 'run', this.name])).status === 0
  }

  log(): Promise<string> {
    return podman('logs', this.name)
  }

  /** Stops it as the runtime does, and returns its exit code. */
  async stop(): Promise<number> {
    await podman('stop', this.name)
    return Number(await podman('inspect', this.name, '--format', '{{.State.ExitCode}}'))
  }

  /** Never rejects. */
  remove(): void {
    spawnSync('podman', inStore(['rm', '--force', '--time', '0', this.name]))
  }

  /** Never rejects. */
  removeData(): void {
    spawnSync('podman', inStore(['volume', 'rm', '--force', this.#volume]))
  }
}

/** An image in OCI's format has no health check for podman: it is an option then (docs/run/install.md). */
function healthOptions(): readonly string[] {
  if (process.env['POSTBOTE_IMAGE_FORMAT'] !== 'oci') return []
  return ['--health-cmd', JSON.stringify(new Dockerfile(root).command('HEALTHCHECK'))]
}
