/**
 * The types of what a producer pushes: exactly one of the 22 update types, with the payload that the producer's own
 * types give it. A type parameter names them, `PostboteClient<Update>` with the `Update` of @grammyjs/types or
 * `PostboteClient<{ message: MyMessage }>`; what it does not name cannot be pushed. By default every payload is an object.
 */
import type { UpdateType } from '../queue/update-types.ts'

/** Which payload each update type has. */
export type UpdatePayloads = { readonly [Type in UpdateType]?: object }

/** For a producer without types of its own. */
export type AnyPayloads = { readonly [Type in UpdateType]: object }

/** An update without its id: one of the types that `Payloads` names, and no other beside it. */
export type PushedUpdate<Payloads extends UpdatePayloads = AnyPayloads> = {
  [Type in UpdateType & keyof Payloads]: {
    readonly [Key in Type]: NonNullable<Payloads[Key]>
  } & { readonly [Key in Exclude<UpdateType, Type>]?: never }
}[UpdateType & keyof Payloads]

/** How one update is treated. */
export interface StreamPushOptions {
  /** A webhook gets updates with the same key one after the other. Derived from the update if not given. */
  readonly orderingKey?: string | undefined
  /** Seconds after which it is not delivered any more. By type if not given. */
  readonly ttlS?: number | undefined
  /** Whether it goes to the bot's /test/ queue. */
  readonly isTest?: boolean | undefined
  /** The same key for the same bot within 24 hours stores nothing again. Drawn for each push if not given. */
  readonly idempotencyKey?: string | undefined
}

export interface PushOptions extends StreamPushOptions {
  /** Ends the wait for the result; whether the update was stored is unknown then. */
  readonly signal?: AbortSignal | undefined
}

/** What became of an update: on disk under its id, or not wanted by the bot (`allowed_updates`). */
export type PushResult = StoredUpdate | FilteredUpdate

export interface StoredUpdate {
  readonly isFiltered: false
  readonly updateId: number
  /** The key was pushed before, maybe by an attempt of this very push whose answer was lost. */
  readonly isDuplicate: boolean
}

export interface FilteredUpdate {
  readonly isFiltered: true
}

/** One of many pushes. */
export interface PushItem<Payloads extends UpdatePayloads = AnyPayloads> {
  readonly botId: number
  readonly update: PushedUpdate<Payloads>
  readonly options?: StreamPushOptions
}
