/**
 * Finds the call that a request makes, before and beside the router of Fastify: which worker serves it, and whether its
 * response lasts. A request is looked up once, by a walk over the parts of its path.
 *
 *     /v1 -> bots -> (any id) -> updates    POST: pushUpdate
 */
import assert from 'node:assert/strict'
import type { IncomingMessage } from 'node:http'
import { portalPrefix } from '../http/target.ts'
import type { Operation, Verb } from './operation.ts'

/** A part of the paths of calls. */
interface Part {
  readonly next: Map<string, Part>
  /** What comes after a part that may be anything. */
  parameter: Part | undefined
  readonly operations: Map<string, Operation>
}

const portalCalls = `${portalPrefix}/v1/`

const found = Symbol('operation')

/** A request with the call that was found for it. */
type LookedUp = Pick<IncomingMessage, 'method' | 'url'> & { [found]?: Operation | 'none' }

const verbOrder: readonly Verb[] = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE']

export class CallTable {
  readonly operations: readonly Operation[]
  readonly #root = newPart()

  constructor(operations: readonly Operation[]) {
    this.operations = operations
    for (const operation of operations) {
      const { operations: others } = this.#partOf(operation.path)
      assert(!others.has(operation.method), `one call is ${operation.method} ${operation.path}`)
      others.set(operation.method, operation)
    }
  }

  /**
   * Returns the call that a request makes.
   *
   * @param method - the verb
   * @param url - the plain request target, with or without a query
   * @returns undefined if there is no such call
   */
  at(method: string | undefined, url: string): Operation | undefined {
    if (method === undefined) return undefined
    if (!url.startsWith(portalCalls)) return this.#partAt(url)?.operations.get(method)
    const operation = this.#partAt(url.slice(portalPrefix.length))?.operations.get(method)
    return operation?.portal === undefined ? undefined : operation
  }

  /** Returns the call that a request makes, and remembers it. Its target is plain. */
  madeBy(request: LookedUp): Operation | undefined {
    const operation = (request[found] ??= this.at(request.method, request.url ?? '/') ?? 'none')
    return operation === 'none' ? undefined : operation
  }

  /** Whether a server with this table has a call. */
  has({ path, method }: Pick<Operation, 'path' | 'method'>): boolean {
    return this.#partAt(path)?.operations.has(method) === true
  }

  /** Returns the verbs of the calls with a path that need a key. */
  verbsAt(path: string): readonly string[] {
    const operations = this.#partAt(path)?.operations ?? new Map<string, Operation>()
    return verbOrder.filter((verb) => (operations.get(verb)?.scope ?? 'open') !== 'open')
  }

  /** Adds the parts of the path of a route that are missing. */
  #partOf(path: string): Part {
    let part = this.#root
    for (const name of path.slice(1).split('/')) {
      if (name.startsWith(':')) part = part.parameter ??= newPart()
      else {
        const next = part.next.get(name) ?? newPart()
        part.next.set(name, next)
        part = next
      }
    }
    return part
  }

  /** A name has precedence over a parameter, but the path of no call needs a way back from one. */
  #partAt(url: string): Part | undefined {
    if (url.charCodeAt(0) !== slash) return undefined
    const question = url.indexOf('?')
    const end = question === -1 ? url.length : question
    let part: Part | undefined = this.#root
    for (let from = 1; part !== undefined; ) {
      const border = url.indexOf('/', from)
      const to = border === -1 || border > end ? end : border
      const name = url.slice(from, to)
      part = part.next.get(name) ?? part.parameter
      if (to === end) break
      from = to + 1
    }
    return part
  }
}

/** Returns the parameter at a place of a path, such as 3 for the shard in `/v1/shards/7/records`. */
export function pathPart(url: string, nth: number): string {
  return (url.split('?', 1)[0] ?? '').split('/')[nth] ?? ''
}

function newPart(): Part {
  return { next: new Map(), parameter: undefined, operations: new Map() }
}

const slash = 0x2f
