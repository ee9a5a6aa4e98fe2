/**
 * The types of what a producer pushes: one of the update types with the payload of the producer's own types.
 *
 * A type parameter names the payloads: `PostboteClient<Update>` with the `Update` of @grammyjs/types, or `PostboteClient<{
 * message: MyMessage }>`. A type that it does not name cannot be pushed. By default, any object is a payload of the 22 types;
 * `PostboteClient<AnyPayloads & { order: Order }>` also pushes a type that the server has added.
 */
import type { UpdateType } from '../../src/kit/update-types.ts'

/** The payload type of each update type, those that a server has added included. */
export type UpdatePayloads =
  | { readonly [Type in UpdateType]?: object }
  | { readonly [added: string]: object | undefined }

/** The default payloads, for a producer without its own types. */
export type AnyPayloads = { readonly [Type in UpdateType]: object }

/** An update without its id: exactly one of the update types that `Payloads` names. */
export type PushedUpdate<Payloads extends UpdatePayloads = AnyPayloads> = {
  [Type in TypeIn<Payloads>]: {
    readonly [Key in Type]: NonNullable<Payloads[Key]>
  } & { readonly [Key in Exclude<UpdateType | TypeIn<Payloads>, Type>]?: never }
}[TypeIn<Payloads>]

/** The names whose values are payloads. An `Update` also has its id. */
type TypeIn<Payloads> = {
  [Key in keyof Payloads & string]-?: NonNullable<Payloads[Key]> extends object ? Key : never
}[keyof Payloads & string]

/** Options of one push in a stream. */
export interface StreamPushOptions {
  /** A webhook receives updates with the same key one after the other. Up to 256 bytes. Default: derived from the update. */
  readonly orderingKey?: string | undefined
  /** Seconds after which the update is no longer delivered, up to a year. Default: depends on the update type. */
  readonly ttlS?: number | undefined
  /** Whether the update goes to the bot's /test/ queue. Default: false. */
  readonly isTest?: boolean | undefined
  /** `telegram`: the server refuses the update if it lacks a field that bot frameworks need. Default: not checked. */
  readonly validate?: 'telegram' | undefined
  /**
   * The server stores nothing if the same key was pushed for the same bot within 24 hours. 1 to 128 printable ASCII
   * characters. Default: a random key for each push.
   */
  readonly idempotencyKey?: string | undefined
  /** The place of the producer in a trace (W3C Trace Context). The server must run with `--trace-context`. Default: none. */
  readonly traceparent?: string | undefined
}

/** Options of a single push. */
export interface PushOptions extends StreamPushOptions {
  /** Ends the wait for the result. `isOutcomeUnknown` says whether the update may have been stored by then. */
  readonly signal?: AbortSignal | undefined
}

/**
 * The result of a push: stored under an update id, or filtered because the bot does not want its type
 * (`allowed_updates`).
 */
export type PushResult = StoredUpdate | FilteredUpdate

/** An update that is synced to disk. */
export interface StoredUpdate {
  readonly isFiltered: false
  readonly updateId: number
  /** Whether the key was pushed before, possibly by an earlier attempt of this same push whose response was lost. */
  readonly isDuplicate: boolean
}

/** An update that was not stored because the bot's `allowed_updates` excludes its type. */
export interface FilteredUpdate {
  readonly isFiltered: true
}

/** One item of `pushAll`. */
export interface PushItem<Payloads extends UpdatePayloads = AnyPayloads> {
  readonly botId: number
  readonly update: PushedUpdate<Payloads>
  readonly options?: StreamPushOptions
}
