import type { FastifyRequest } from 'fastify'
import type { Surroundings } from '../../surroundings.ts'
import type { OwnerLinks } from '../owner-links.ts'

/** What routes need that ask other workers, too. */
export interface RouteOptions extends Pick<Surroundings, 'clock'> {
  linksOf(request: FastifyRequest): OwnerLinks
  /** Whether another worker forwarded the request, so that only this worker responds to it. */
  isForwarded(request: FastifyRequest): boolean
}
