/**
 * Routes for the keys of the private API (docs/use/api.md). The worker that has shard 0 answers them, whichever worker got the
 * request. A change returns after all workers were told, so a revoked key is refused from then on; the response says how
 * many workers could not be told.
 *
 * A key is shown once, when it is made or rotated.
 */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { scopes } from '../access/access.ts'
import { accessKeyBotsMax, accessKeyRateMax } from '../access/limits.ts'
import type { KeyRegistry, WantedKey } from '../access/key-registry.ts'
import type { Clock } from '../clock.ts'
import { PostboteError } from '../errors.ts'
import { botIdMax, botIdMin } from '../limits.ts'
import type { Scope } from '../shard/access-key-record.ts'
import type { StoredAccessKey } from '../shard/stored.ts'
import { askOwners } from './ask-owners.ts'
import { type KeyQuestion, type KeySync, keyTablePath } from './key-sync.ts'
import { accessKeyEndSMax, accessKeyNameLengthMax, accessKeyOverlapSMax } from './limits.ts'
import type { OwnerLinks } from './owner-links.ts'
import { requestAccess } from './request-access.ts'

export interface KeyRoutesOptions {
  readonly clock: Clock
  readonly keys: {
    readonly registry: KeyRegistry
    readonly sync: Pick<KeySync, 'refresh'>
  }
  linksOf(request: FastifyRequest): OwnerLinks
  /** Whether another worker forwarded the request. */
  isForwarded(request: FastifyRequest): boolean
}

/** With these, a name could pass for another one, or move the cursor of a terminal. */
const namelessCharacters = '\\p{Cc}\\p{Cf}\\p{Cs}\\p{Zl}\\p{Zp}\\p{Default_Ignorable_Code_Point}'
const rate = Type.Integer({ minimum: 1, maximum: accessKeyRateMax })
const newKey = Type.Object(
  {
    name: Type.String({
      pattern: `^[^${namelessCharacters}]{1,${accessKeyNameLengthMax}}$`,
      description: `1 to ${accessKeyNameLengthMax} characters, no control or invisible characters and none that change the direction of writing`,
    }),
    scopes: Type.Array(Type.Enum([...scopes], { type: 'string' }), {
      minItems: 1,
      maxItems: scopes.length,
      uniqueItems: true,
    }),
    bots: Type.Optional(
      Type.Array(Type.Integer({ minimum: botIdMin, maximum: botIdMax }), {
        minItems: 1,
        maxItems: accessKeyBotsMax,
        uniqueItems: true,
        description: 'The only bots that the key is for. By default it is for all.',
      }),
    ),
    updates_per_second: Type.Optional(rate),
    requests_per_second: Type.Optional(rate),
    expires: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: accessKeyEndSMax,
        description: 'When the key ends, in Unix seconds.',
      }),
    ),
  },
  { additionalProperties: false },
)
const overlap = Type.Object(
  { overlap: Type.Optional(Type.Integer({ minimum: 0, maximum: accessKeyOverlapSMax })) },
  { additionalProperties: false },
)

interface NewKey {
  Body: {
    readonly name: string
    readonly scopes: readonly Scope[]
    readonly bots?: readonly number[]
    readonly updates_per_second?: number
    readonly requests_per_second?: number
    readonly expires?: number
  }
}

interface OfKey {
  Params: { readonly key_id: string }
}

interface Rotation extends OfKey {
  Body: { readonly overlap?: number } | null
}

const path = '/v1/keys'
const keysChangedPath = '/internal/keys-changed'
const keysTarget = /^\/v1\/keys(?:[/?]|$)/

/** The shard that has the keys. */
export const keysShard = 0

/** Whether a request with this target is about keys, so that the worker of `keysShard` answers it. */
export function isAboutKeys(url: string): boolean {
  return keysTarget.test(url)
}

export function addKeyRoutes(app: FastifyInstance, options: KeyRoutesOptions): void {
  const { keys } = options
  const { registry, sync } = keys

  app.post<NewKey>(path, { schema: { body: newKey } }, async (request) => {
    const wanted = wantedOf(request.body, registry.clock.nowMs())
    const { id, record, text } = await registry.create(wanted, requestAccess(request))
    const missed = await tellAll(options, request)
    return { ...keyJson({ id, record }), key: text, ...missed }
  })

  app.get(path, async () => ({ keys: (await registry.list()).map((key) => keyJson(key)) }))

  app.post<Rotation>(
    `${path}/:key_id/rotate`,
    { schema: { body: Type.Union([overlap, Type.Null()]) } },
    async (request) => {
      const { key_id: id } = request.params
      const overlapS = request.body?.overlap ?? 0
      const { record, text } = await registry.rotate(id, overlapS, requestAccess(request))
      const missed = await tellAll(options, request)
      return { ...keyJson({ id, record }), key: text, ...missed }
    },
  )

  app.delete<OfKey>(`${path}/:key_id`, async (request) => {
    const { key_id: id } = request.params
    const heirs = await registry.revoke(id, requestAccess(request))
    const others = heirs.length > 0 ? { also_revoked: heirs } : {}
    return { key_id: id, revoked: true, ...others, ...(await tellAll(options, request)) }
  })

  // Used between workers only.
  const assertForwarded = (request: FastifyRequest): void => {
    if (!options.isForwarded(request)) throw new PostboteError('NOT_FOUND')
  }
  app.post<{ Body: KeyQuestion }>(keyTablePath, async (request) => {
    assertForwarded(request)
    const { version, uses } = request.body
    const table = await registry.table()
    registry.noteUses(uses)
    return table.version === version ? { version } : table
  })
  app.post(keysChangedPath, async (request) => {
    assertForwarded(request)
    return { isTold: await sync.refresh() }
  })
}

/** Has all workers take the change. Returns the field of the response for those that have not. */
async function tellAll(options: KeyRoutesOptions, request: FastifyRequest): Promise<object> {
  const { clock, keys } = options
  const links = options.linksOf(request)
  const answers = await askOwners<{ readonly isTold: boolean }>({
    clock,
    links,
    path: keysChangedPath,
    own: async () => ({ isTold: await keys.sync.refresh() }),
  })
  const told = answers.filter(({ answer }) => answer.isTold).length
  const unreached = links.others.length + 1 - told
  return unreached > 0 ? { unreached_workers: unreached } : {}
}

function wantedOf(body: NewKey['Body'], nowMs: number): WantedKey {
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

/** Has nothing of the secrets. */
function keyJson({ id, record }: StoredAccessKey): object {
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
