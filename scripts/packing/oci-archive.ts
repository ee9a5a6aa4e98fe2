/**
 * An OCI archive with one image for several processors, written without a container engine (OCI image layout 1.0, image
 * specification 1.1). Its index.json names one index, since engines refuse to choose between several entries there:
 *
 *     index.json -> index -> manifest of amd64 -> configuration, layers
 *                         -> manifest of arm64 -> configuration, layers
 */
import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import type { Architecture } from './architecture.ts'
import type { Dockerfile } from './dockerfile.ts'
import { tarOf } from './tar-of.ts'

export interface PlatformImage {
  readonly architecture: Architecture
  /** Tar archives, the lowest first. */
  readonly layers: readonly string[]
}

export interface OciArchiveOptions {
  readonly images: readonly PlatformImage[]
  readonly dockerfile: Dockerfile
  readonly version: string
  readonly license: string
  readonly epochS: number
  /** An empty folder for what the archive consists of. */
  readonly making: string
  readonly to: string
}

interface Descriptor {
  readonly mediaType: string
  readonly digest: string
  readonly size: number
}

const oci = 'application/vnd.oci.image'

/** Writes the archive. */
export function writeOciArchive(options: OciArchiveOptions): void {
  const { making, version, epochS, to } = options
  mkdirSync(join(making, 'blobs/sha256'), { recursive: true })
  const manifests = options.images.map((image) => ({
    ...addManifest(options, image),
    platform: { architecture: image.architecture.debian, os: 'linux' },
  }))
  const index = addJson(making, `${oci}.index.v1+json`, {
    schemaVersion: 2,
    mediaType: `${oci}.index.v1+json`,
    manifests,
    annotations: { 'org.opencontainers.image.version': version },
  })
  // The name of the image once it is loaded: that of the first line for podman and skopeo, of the second one for Docker.
  const annotations = {
    'org.opencontainers.image.ref.name': `localhost/postbote:${version}`,
    'io.containerd.image.name': `localhost/postbote:${version}`,
  }
  writeJson(join(making, 'index.json'), {
    schemaVersion: 2,
    mediaType: `${oci}.index.v1+json`,
    manifests: [{ ...index, annotations }],
  })
  writeJson(join(making, 'oci-layout'), { imageLayoutVersion: '1.0.0' })
  tarOf({ folder: making, to, epochS })
}

/** Adds an image for one processor. */
function addManifest(options: OciArchiveOptions, image: PlatformImage): Descriptor {
  const { making, dockerfile, version, license } = options
  const tars = image.layers.map((file) => readFileSync(file))
  const created = new Date(options.epochS * 1_000).toISOString()
  const config = addJson(making, `${oci}.config.v1+json`, {
    created,
    architecture: image.architecture.debian,
    os: 'linux',
    config: { ...configOf(dockerfile), Labels: labels(version, license) },
    rootfs: { type: 'layers', diff_ids: tars.map((tar) => digestOf(tar)) },
    history: image.layers.map(() => ({ created })),
  })
  const layers = tars.map((tar) => {
    return addBlob(making, `${oci}.layer.v1.tar+gzip`, gzipSync(tar, { level: 9 }))
  })
  return addJson(making, `${oci}.manifest.v1+json`, {
    schemaVersion: 2,
    mediaType: `${oci}.manifest.v1+json`,
    config,
    layers,
  })
}

/** What the Dockerfile says of how the image is run. */
export function configOf(dockerfile: Dockerfile): object {
  const env = { PATH: '/usr/local/bin:/usr/bin:/bin', ...dockerfile.env }
  const check = dockerfile.value('HEALTHCHECK')
  const [, intervalS, timeoutS, startS] =
    /--interval=(\d+)s --timeout=(\d+)s --start-period=(\d+)s/.exec(check) ?? []
  return {
    User: dockerfile.value('USER'),
    WorkingDir: dockerfile.value('WORKDIR'),
    Env: Object.entries(env).map(([name, text]) => `${name}=${text}`),
    Entrypoint: dockerfile.command('ENTRYPOINT'),
    Cmd: dockerfile.command('CMD'),
    ExposedPorts: Object.fromEntries(
      dockerfile
        .value('EXPOSE')
        .split(' ')
        .map((port) => [`${port}/tcp`, {}]),
    ),
    Volumes: { [dockerfile.value('VOLUME')]: {} },
    // Docker's addition to the specification, which podman does not read.
    Healthcheck: {
      Test: ['CMD', ...dockerfile.command('HEALTHCHECK')],
      Interval: nanoseconds(intervalS),
      Timeout: nanoseconds(timeoutS),
      StartPeriod: nanoseconds(startS),
    },
  }
}

function nanoseconds(seconds: string | undefined): number {
  if (seconds === undefined) throw new Error('HEALTHCHECK: expected its times in seconds')
  return Number(seconds) * 1e9
}

function labels(version: string, license: string): object {
  return {
    'org.opencontainers.image.title': 'postbote',
    'org.opencontainers.image.version': version,
    'org.opencontainers.image.licenses': license,
  }
}

function addJson(making: string, mediaType: string, value: object): Descriptor {
  return addBlob(making, mediaType, Buffer.from(JSON.stringify(value)))
}

function addBlob(making: string, mediaType: string, bytes: Buffer): Descriptor {
  const digest = digestOf(bytes)
  writeFileSync(join(making, 'blobs', digest.replace(':', '/')), bytes)
  return { mediaType, digest, size: bytes.length }
}

function digestOf(bytes: Buffer): string {
  return `sha256:${createHash('sha256').update(bytes).digest('hex')}`
}

function writeJson(file: string, value: object): void {
  writeFileSync(file, JSON.stringify(value))
}
