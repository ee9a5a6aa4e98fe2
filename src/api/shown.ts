/**
 * How the command line shows a field of a result, told once, in the schema of the field. It is no part of the document of
 * the API: neither JSON nor the check of a request sees a symbol.
 *
 *     time    seconds since 1970, as a date        ms      milliseconds, of which the head of a column says it
 *     age     seconds, as the largest unit         rate    per second, which the head of a column says shorter
 *     bytes   as the largest unit
 *
 * A field that may be null may have a word for that, such as `all`. Any other number, such as an id, is shown as its digits.
 */
import type { TSchema } from 'typebox'

export type ShownAs = 'time' | 'age' | 'bytes' | 'ms' | 'rate'

const shownAs = Symbol('shownAs')

/** Returns the schema of a field that is shown in this way. */
export function shown<Schema extends TSchema>(as: ShownAs, schema: Schema): Schema {
  return Object.assign(schema, { [shownAs]: as })
}

/** Returns the schema of a field that people read as this word if it is null. */
export function shownNull<Schema extends TSchema>(word: string, schema: Schema): Schema {
  return Object.assign(schema, { [nullWord]: word })
}

const nullWord = Symbol('nullWord')

/** Returns what stands for null; undefined if the schema does not say it. */
export function nullWordOf(schema: TSchema & { readonly [nullWord]?: string }): string | undefined {
  return schema[nullWord]
}

/** Returns how a field is shown; undefined if as it is. */
export function shownAsOf(schema: TSchema & { readonly [shownAs]?: ShownAs }): ShownAs | undefined {
  return schema[shownAs]
}
