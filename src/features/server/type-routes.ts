/** GET /v1/update-types: the types of updates that this server knows. All workers and nodes know the same. */
import type { FastifyInstance } from 'fastify'
import type { ResultOf } from '../../api/operation.ts'
import { serverOperations } from './server-operations.ts'
import { idPaths } from '../../queue/check/ordering-key.ts'
import { lifeS } from '../../queue/check/time-to-live.ts'
import { contractTypes, defaultTypesMask, isInMask, updateTypes } from '../../kit/update-types.ts'
import { addOperation } from '../../private-api/add-operations.ts'

export function addTypeRoutes(app: FastifyInstance): void {
  addOperation(app, serverOperations.listUpdateTypes, async () => ({ types: knownTypes() }))
}

function knownTypes(): ResultOf<typeof serverOperations.listUpdateTypes>['types'] {
  return updateTypes.map((type, number) => ({
    type,
    is_added: number >= contractTypes.length,
    is_default: isInMask(defaultTypesMask, number),
    key_paths: [...(idPaths[number] ?? [])],
    ttl: lifeS(number, undefined),
  }))
}
