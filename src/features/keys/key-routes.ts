/**
 * Routes for the keys of the private API (docs/use/api.md). The worker that has shard 0 answers them, whichever worker got the
 * request. A change returns after all workers were told, so a revoked key is refused from then on; the response says how
 * many workers could not be told.
 *
 * A key is shown once, when it is made or rotated.
 */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { WantedKey } from '../../access/access-key-registry.ts'
import { PostboteError } from '../../kit/errors.ts'
import { keyOperations } from './key-operations.ts'
import type { BodyOf, ResultOf } from '../../api/operation.ts'
import type { StoredAccessKey } from '../../shard/records/stored-records.ts'
import { addOperations } from '../../private-api/add-operations.ts'
import { keyChanges } from '../../private-api/setting-changes.ts'
import { fieldValues } from '../../private-api/field-values.ts'
import { type AskingRoute, askWorkers } from '../../links/ask/ask-workers.ts'
import { addAnswers, type AnswersTo, asks } from '../../links/ask/question.ts'
import { requestAccess } from '../../access/request-access.ts'
import type { PrivateApiParts } from '../../private-api/private-api-parts.ts'

type Options = Pick<PrivateApiParts, 'keys'> & AskingRoute

export const keyQuestions = {
  /** The keys have changed: does it know them now? */
  keysChanged: asks<undefined, { readonly isTold: boolean }>('keys-changed'),
}

export function addKeyRoutes(app: FastifyInstance, options: Options): void {
  const { registry } = options.keys
  addAnswers(app, keyQuestions, answersOf(options), options)

  addOperations(app, keyOperations, {
    async createKey({ body, request }) {
      const wanted = wantedOf(body, registry.clock.nowMs())
      const { id, record, text } = await registry.create(wanted, requestAccess(request))
      request.changes = keyChanges({}, record)
      const unreached = await tellAll(options, request)
      return { ...keyJson({ id, record }), key: text, unreached_workers: unreached }
    },
    async listKeys() {
      return { keys: (await registry.list()).map((key) => keyJson(key)) }
    },
    async rotateKey({ params: { key_id: id }, body, request }) {
      const access = requestAccess(request)
      const { record, text } = await registry.rotate(id, body?.overlap ?? 0, access)
      request.changes = keyChanges({ ...record, secrets: [] }, record)
      const unreached = await tellAll(options, request)
      return { ...keyJson({ id, record }), key: text, unreached_workers: unreached }
    },
    async revokeKey({ params: { key_id: id }, request }) {
      const heirs = await registry.revoke(id, requestAccess(request))
      return {
        key_id: id,
        revoked: true as const,
        also_revoked: fieldValues.someOf(heirs),
        unreached_workers: await tellAll(options, request),
      }
    },
  })
}

function answersOf({ keys: { sync } }: Options): AnswersTo<typeof keyQuestions> {
  return { keysChanged: async () => ({ isTold: await sync.refresh() }) }
}

/** Has all workers take the change. Returns how many have not; undefined if all have. */
async function tellAll(options: Options, request: FastifyRequest): Promise<number | undefined> {
  const owners = options.ownersOf(request)
  const asked = { ...options, answers: answersOf(options), owners }
  const answers = await askWorkers(asked, keyQuestions, 'keysChanged', undefined)
  const told = answers.filter(({ answer }) => answer.isTold).length
  const unreached = owners.others.length + 1 - told
  return unreached > 0 ? unreached : undefined
}

function wantedOf(body: BodyOf<typeof keyOperations.createKey>, nowMs: number): WantedKey {
  const endsAtMs = body.expires === undefined ? undefined : body.expires * 1_000
  if (endsAtMs !== undefined && endsAtMs <= nowMs) {
    throw new PostboteError('BAD_REQUEST', { detail: 'expires: expected a time in the future' })
  }
  return {
    name: body.name,
    scopes: body.scopes,
    bots: body.bots,
    updatesPerSecond: body.updates_per_second,
    requestsPerSecond: body.requests_per_second,
    endsAtMs,
  }
}

type KeyJson = ResultOf<typeof keyOperations.listKeys>['keys'][number]

/** Has nothing of the secrets. */
function keyJson({ id, record }: StoredAccessKey): KeyJson {
  const [, old] = record.secrets
  return {
    key_id: id,
    name: record.name,
    scopes: record.scopes,
    bots: record.bots ?? null,
    updates_per_second: record.updatesPerSecond ?? null,
    requests_per_second: record.requestsPerSecond ?? null,
    created_at: Math.floor(record.createdAtMs / 1_000),
    created_by: record.createdBy ?? null,
    expires: secondsOf(record.endsAtMs),
    last_used: secondsOf(record.lastUsedMs),
    old_secret_ends: secondsOf(old?.endsAtMs),
  }
}

function secondsOf(timeMs: number | undefined): number | null {
  return timeMs === undefined ? null : Math.ceil(timeMs / 1_000)
}
