/**
 * The files of the dashboard: the page at `/`, its program and its style. The build puts them into dist/dashboard/
 * (scripts/bundle.ts). A worker reads each one when it is first requested and then sends it from memory: most workers
 * are never asked, and a worker must start fast.
 *
 * They contain no secret and need no key: the page itself asks for the key. Their headers are the second line of defense
 * of the page. It runs only its own program and style, asks only this server, and is shown in no frame.
 */
import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { PostboteError } from '../kit/errors.ts'

/** A file with its headers. */
export interface DashboardFile {
  readonly body: Buffer
  readonly contentType: string
  readonly etag: string
}

/** Returns the bytes of a file of the build; rejects if it does not exist. */
export type ReadBuilt = (name: string) => Promise<Buffer>

/** The names of files in the build, with their types, by their paths. */
export type FileNames = Readonly<Record<string, readonly [name: string, contentType: string]>>

const names: FileNames = {
  '/': ['index.html', 'text/html; charset=utf-8'],
  '/app.js': ['app.js', 'text/javascript; charset=utf-8'],
  '/first-paint.js': ['first-paint.js', 'text/javascript; charset=utf-8'],
  '/app.css': ['app.css', 'text/css; charset=utf-8'],
}

/** The paths of the files, which need no key. */
export const dashboardPaths: readonly string[] = Object.keys(names)

/**
 * Scripts and styles come only from the files above, and no script can turn text into HTML (trusted types). `data:` is
 * for the icon, for which a browser would otherwise ask at /favicon.ico.
 *
 * @param frameAncestor - the origin whose pages may frame the page
 */
export function contentSecurityPolicy(frameAncestor = "'none'"): string {
  return [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "connect-src 'self'",
    'img-src data:',
    "base-uri 'none'",
    "form-action 'none'",
    `frame-ancestors ${frameAncestor}`,
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join('; ')
}

/** The headers of all files. */
export const fileHeaders = {
  'content-security-policy': contentSecurityPolicy(),
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  // A browser asks each time whether it has the present version.
  'cache-control': 'no-cache',
} as const

/** Reads and keeps the files of the dashboard. */
export class DashboardFiles {
  readonly #read: ReadBuilt
  readonly #names: FileNames
  readonly #files = new Map<string, Promise<DashboardFile>>()

  constructor(read: ReadBuilt = readBuilt, ofFiles: FileNames = names) {
    this.#read = read
    this.#names = ofFiles
  }

  /**
   * Returns a file.
   *
   * @param path - one of the paths of the names
   * @throws NOT_FOUND if there is no such path, or if the build has no dashboard
   */
  async at(path: string): Promise<DashboardFile> {
    const named = this.#names[path]
    if (named === undefined) throw new PostboteError('NOT_FOUND')
    const file = this.#files.get(path) ?? this.#load(...named)
    this.#files.set(path, file)
    try {
      return await file
    } catch (error) {
      this.#files.delete(path)
      throw new PostboteError('NOT_FOUND', { cause: error })
    }
  }

  async #load(name: string, contentType: string): Promise<DashboardFile> {
    const body = await this.#read(name)
    const etag = `"${createHash('sha256').update(body).digest('base64url')}"`
    return { body, contentType, etag }
  }
}

/** Adds the routes of the files. */
export function addDashboardRoutes(app: FastifyInstance, files: DashboardFiles): void {
  const send = async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> => {
    const { body, contentType, etag } = await files.at(request.routeOptions.url ?? '')
    void reply.headers({ ...fileHeaders, etag })
    if (hasTag(request.headers['if-none-match'], etag)) return reply.code(304).send()
    return reply.type(contentType).send(body)
  }
  for (const url of dashboardPaths) app.route({ method: ['GET', 'HEAD'], url, handler: send })
}

/** A proxy that compresses a response marks its tag as weak. */
function hasTag(ifNoneMatch: string | undefined, etag: string): boolean {
  const tags = ifNoneMatch?.split(',').map((tag) => tag.trim().replace(/^W\//, '')) ?? []
  return tags.includes(etag) || tags.includes('*')
}

/** In the bundle of a worker, `import.meta.url` lies one folder below dist/. */
function readBuilt(name: string): Promise<Buffer> {
  return readFile(new URL(`../dashboard/${name}`, import.meta.url))
}
