/**
 * Leads requests below `/portal/` to the API of the owner's page: on the private listener always, on the public one only with
 * `--portal`. A worker makes that API when it is first asked, because most are never asked and a worker must start fast.
 */
import type { RequestListener } from 'node:http'
import type { FastifyInstance } from 'fastify'
import { isPortalTarget } from '../bot-api/target.ts'
import { createPortalApi, type PortalApiOptions } from '../private-api/portal-api.ts'

export class PortalListener {
  readonly #isPublic: boolean
  readonly #options: PortalApiOptions
  #api: FastifyInstance | undefined
  #ready: PromiseLike<unknown> | undefined

  constructor(isPublic: boolean, options: PortalApiOptions) {
    this.#isPublic = isPublic
    this.#options = options
  }

  onPublic(otherwise: RequestListener): RequestListener {
    return this.#isPublic ? this.onPrivate(otherwise) : otherwise
  }

  onPrivate(otherwise: RequestListener): RequestListener {
    return (request, response) => {
      if (!isPortalTarget(request.url ?? '/')) {
        otherwise(request, response)
        return
      }
      const api = (this.#api ??= createPortalApi(this.#options))
      this.#ready ??= api.ready()
      void this.#ready.then(() => api.routing(request, response))
    }
  }
}
