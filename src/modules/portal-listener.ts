/**
 * Leads requests of the owner's page to its API: those on the private listener always, those on the public one only with
 * `--portal`. A worker makes that API when it is first asked, because most are never asked and a worker must start fast. If that
 * fails, the requests that wait for it are refused, and the next one tries again.
 */
import type { RequestListener } from 'node:http'
import type { FastifyInstance } from 'fastify'
import { toPostboteError } from '../kit/errors.ts'
import type { RequestRouter } from '../links/forward/request-router.ts'
import { createPortalApi, type PortalApiOptions } from './portal-api.ts'
import { refusePrivate } from '../http/reply.ts'

export class PortalListener {
  readonly #router: Pick<RequestRouter, 'isPortalCall'>
  readonly #options: PortalApiOptions
  readonly #create: (options: PortalApiOptions) => FastifyInstance
  #ready: Promise<FastifyInstance> | undefined

  constructor(
    router: Pick<RequestRouter, 'isPortalCall'>,
    options: PortalApiOptions,
    create = createPortalApi,
  ) {
    this.#router = router
    this.#options = options
    this.#create = create
  }

  /** Returns the listener of a server. `otherwise` is that of its application. */
  listener(otherwise: RequestListener): RequestListener {
    return (request, response) => {
      if (!this.#router.isPortalCall(request)) {
        otherwise(request, response)
        return
      }
      this.#ready ??= this.#prepare()
      this.#ready.then(
        (api) => api.routing(request, response),
        (error: unknown) => refusePrivate(response, toPostboteError(error)),
      )
    }
  }

  async #prepare(): Promise<FastifyInstance> {
    try {
      const api = this.#create(this.#options)
      await api.ready()
      return api
    } catch (error) {
      this.#ready = undefined
      this.#options.log.error({ cause: String(error) }, "the API of the owner's page did not start")
      throw error
    }
  }
}
