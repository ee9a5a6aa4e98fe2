/**
 * A type of updates that an operator adds to the 22 of the contract (`--update-type`, `--update-types-of`), and the list of them
 * that a data directory, or the row of a cluster, stores.
 *
 *   stored list    ["order:order.id","ping"]     the first has the number 22, the next 23, ...
 *
 * The list only grows. A type is known by its name, so the order of options means nothing, and it keeps its key path, because
 * the ordering keys that are stored were derived by it. Its time to live may change.
 */
import { ttlSMax } from './limits.ts'

export interface AddedType {
  readonly name: string
  /** The place of the id in the payload from which ordering keys are derived, such as `chat.id`. */
  readonly keyPath?: string | undefined
  /** In seconds. */
  readonly ttlS?: number | undefined
}

/** A set of types has 64 bits, of which the contract takes 22. */
export const addedTypesMax = 42

/** The native check has room for paths of this many names, and of this many characters (check_updates.c). */
const pathNamesMax = 4
const pathLengthMax = 64

/** The fields of the header of a pair (features/ingest/pair-header.ts), in the order in which its errors list them. */
export const pairFields = [
  'bot_id',
  'ordering_key',
  'ttl',
  'idempotency_key',
  'test',
  'validate',
  'traceparent',
] as const

/** Names that have another meaning where the name of a type is expected. */
export const reservedNames: readonly string[] = ['update_id', ...pairFields]

/** What an option says of a type, for errors and help. */
export const addedTypeForm = `name[:keyPath[:ttl]] with a name of 1 to 31 of a-z, 0-9 and _ that begins with a letter and is neither one of the 22 types nor a field of a push, a path of at most ${pathNamesMax} names and ${pathLengthMax} characters such as chat.id, and a ttl of 1 to ${ttlSMax} seconds`

const name = '[a-z][a-z0-9_]{0,30}'
const form = new RegExp(
  `^(${name})(?::([A-Za-z0-9_]+(?:\\.[A-Za-z0-9_]+)*|)(?::([1-9]\\d{0,8}))?)?$`,
)

/** Reads a type as an option or a stored list has it. Returns undefined for any other text. */
export function parseAddedType(text: string): AddedType | undefined {
  const [, own, path = '', digits] = form.exec(text) ?? []
  if (own === undefined || reservedNames.includes(own)) return undefined
  if (path.length > pathLengthMax || path.split('.').length > pathNamesMax) return undefined
  const ttlS = digits === undefined ? undefined : Number(digits)
  if (ttlS !== undefined && ttlS > ttlSMax) return undefined
  return { name: own, keyPath: path === '' ? undefined : path, ttlS }
}

/** Returns a type as a stored list has it, which is also how an option names it. */
export function storedType({ name: own, keyPath }: AddedType): string {
  return keyPath === undefined ? own : `${own}:${keyPath}`
}

/** Returns undefined for anything but a list of added types, each with its own name. */
export function storedTypes(value: unknown): readonly string[] | undefined {
  if (!Array.isArray(value) || value.length === 0 || value.length > addedTypesMax) return undefined
  const items: readonly unknown[] = value
  const texts = items.filter((item) => typeof item === 'string')
  const names = new Set(texts.flatMap((text) => parseAddedType(text)?.name ?? []))
  return names.size === items.length ? texts : undefined
}

/** The types that versions of the reference have beyond the 22. Do not change their paths: directories have them. */
export const typesOfReference = {
  '10.0': [
    { name: 'purchased_paid_media', keyPath: 'from.id' },
    { name: 'managed_bot', keyPath: 'user.id' },
    { name: 'guest_message', keyPath: 'chat.id' },
    // These two have no known form.
    { name: 'custom_event' },
    { name: 'custom_query', ttlS: 150 },
  ],
} as const satisfies Readonly<Record<string, readonly AddedType[]>>

/** A version of the reference whose types can be added. */
export type ReferenceVersion = keyof typeof typesOfReference

export const versionsOfReference = ['10.0'] as const satisfies readonly ReferenceVersion[]

/** The part of the options that names types. */
export interface TypeOptions {
  readonly updateTypes: readonly AddedType[]
  readonly updateTypesOf: ReferenceVersion | undefined
}

/** Joins the types of a version of the reference to those that are given one by one, which have precedence. */
export function givenTypes({
  updateTypes: own,
  updateTypesOf: version,
}: TypeOptions): readonly AddedType[] {
  const more: readonly AddedType[] = version === undefined ? [] : typesOfReference[version]
  return [...own, ...more.filter((type) => own.every((each) => each.name !== type.name))]
}

/** The options do not fit the types that are stored. */
export class AddedTypesError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'AddedTypesError'
  }
}

/**
 * Gives types their numbers: those of the stored list, then those that are new.
 *
 * @param place - what has the list, for errors
 * @returns the types in the order of their numbers
 * @throws AddedTypesError if a stored type is not given any more or has another path, or if there are too many
 */
export function numberedTypes(
  stored: readonly string[],
  given: readonly AddedType[],
  place: string,
): readonly AddedType[] {
  const byName = new Map(given.map((type) => [type.name, type]))
  const known = stored.map((text) => {
    const type = byName.get(parseAddedType(text)?.name ?? '')
    return type !== undefined && storedType(type) === text ? type : undefined
  })
  const missing = stored.filter((_, nth) => known[nth] === undefined)
  if (missing.length > 0) {
    throw new AddedTypesError(
      `${place} has the added types ${missing.join(', ')}, which the options do not name, or name with another path; it may have updates of them, so give again: ${missing.map((text) => `--update-type ${text}`).join(' ')}`,
    )
  }
  const names = new Set(stored.map((text) => parseAddedType(text)?.name))
  const types = [
    ...known.flatMap((type) => type ?? []),
    ...given.filter((type) => !names.has(type.name)),
  ]
  if (types.length <= addedTypesMax) return types
  throw new AddedTypesError(
    `${place} can have at most ${addedTypesMax} added types, and would have ${types.length}`,
  )
}
