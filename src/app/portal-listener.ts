/**
 * Leads requests of the owner's page to its API: those on the private listener always, those on the public one only with
 * `--portal`. A worker makes that API when it is first asked, because most are never asked and a worker must start fast.
 */
import type { RequestListener } from 'node:http'
import type { FastifyInstance } from 'fastify'
import type { RequestRouter } from '../cluster/forward/request-router.ts'
import { createPortalApi, type PortalApiOptions } from '../private-api/portal-api.ts'

export class PortalListener {
  readonly #router: Pick<RequestRouter, 'isPortalCall'>
  readonly #options: PortalApiOptions
  #api: FastifyInstance | undefined
  #ready: PromiseLike<unknown> | undefined

  constructor(router: Pick<RequestRouter, 'isPortalCall'>, options: PortalApiOptions) {
    this.#router = router
    this.#options = options
  }

  /** Returns the listener of a server. `otherwise` is that of its application. */
  listener(otherwise: RequestListener): RequestListener {
    return (request, response) => {
      if (!this.#router.isPortalCall(request)) {
        otherwise(request, response)
        return
      }
      const api = (this.#api ??= createPortalApi(this.#options))
      this.#ready ??= api.ready()
      void this.#ready.then(() => api.routing(request, response))
    }
  }
}
