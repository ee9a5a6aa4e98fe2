/**
 * The words in which the rows of calls describe their fields: `import * as is from '../../api/words.ts'`, and a row reads
 * `paused: is.flag('Whether the operator has stopped deliveries.')`.
 *
 * Each word returns a new schema of TypeBox (operation.ts says when). The fields of an object are the last argument, after its
 * name in the document and what is said of it. The words in the second half are fields that several calls have.
 */
import {
  type TArray,
  type TArrayOptions,
  type TBoolean,
  type TEnum,
  type TInteger,
  type TLiteral,
  type TLiteralValue,
  type TNull,
  type TNumber,
  type TNumberOptions,
  type TObject,
  type TProperties,
  type TSchema,
  type TSchemaOptions,
  type TString,
  type TStringOptions,
  type TUnion,
  Type,
} from 'typebox'
import { botIdMax, botIdMin, jobIdMax, updateIdMax } from '../kit/limits.ts'
import { scopes } from '../kit/rights.ts'
import { healthWords } from '../kit/states.ts'
import { idempotencyKeyLengthMax } from './limits.ts'

/** What is said of a field, and its rules in the words of JSON Schema. Either may be left out. */
type Said<Rules> = readonly [says?: string, rules?: Rules] | readonly [rules: Rules]

function optionsOf<Rules extends TSchemaOptions>([first, rules]: Said<Rules>): TSchemaOptions {
  return typeof first === 'string' ? { ...rules, description: first } : (first ?? {})
}

/** What is said of a text with a pattern is also the end of its refusal, "expected ...": `1 to 64 letters`. */
export function text(...said: Said<TStringOptions>): TString {
  return Type.String(optionsOf(said))
}

export function flag(...said: Said<TSchemaOptions>): TBoolean {
  return Type.Boolean(optionsOf(said))
}

export function number(...said: Said<TNumberOptions>): TNumber {
  return Type.Number(optionsOf(said))
}

export function integer(...said: Said<TNumberOptions>): TInteger {
  return Type.Integer(optionsOf(said))
}

/** This value and no other. */
export function exactly<const Value extends TLiteralValue>(
  value: Value,
  ...said: Said<TSchemaOptions>
): TLiteral<Value> {
  return Type.Literal(value, optionsOf(said))
}

/** One of these texts. */
export function oneOf<const Words extends readonly string[]>(
  words: Words,
  says?: string,
): TEnum<[...Words]> {
  return Type.Enum<[...Words]>([...words], {
    type: 'string',
    ...(says !== undefined && { description: says }),
  })
}

export function list<Item extends TSchema>(item: Item, ...said: Said<TArrayOptions>): TArray<Item> {
  return Type.Array(item, optionsOf(said))
}

/** A value of one of these forms. */
export function either<Forms extends TSchema[]>(
  forms: readonly [...Forms],
  rules?: TSchemaOptions,
): TUnion<Forms> {
  return Type.Union([...forms], rules)
}

/** A field that may be absent. */
export function optional<Schema extends TSchema>(schema: Schema) {
  return Type.Optional(schema)
}

/** A value that may be null, for which people read this word. */
export function orNull<Schema extends TSchema>(
  schema: Schema,
  word = '-',
): TUnion<[Schema, TNull]> {
  return shownNull(word, Type.Union([schema, Type.Null()]))
}

/** An object that other fields may join. */
export function object<Fields extends TProperties>(fields: Fields): TObject<Fields> {
  return Type.Object(fields)
}

/** An object of which something is said. */
export function described<Fields extends TProperties>(
  says: string,
  fields: Fields,
): TObject<Fields> {
  return Type.Object(fields, { description: says })
}

/** An object that has this name in the document, where others refer to it. */
export function named<Fields extends TProperties>(
  id: string,
  ...rest: readonly [says: string, fields: Fields] | readonly [fields: Fields]
): TObject<Fields> {
  if (rest.length === 1) return Type.Object(rest[0], { $id: id })
  const [says, fields] = rest
  return Type.Object(fields, { $id: id, description: says })
}

/** An object that is refused with a field beside these: in a request, that is a field that is misspelled. */
export function only<Fields extends TProperties>(fields: Fields): TObject<Fields> {
  return Type.Object(fields, { additionalProperties: false })
}

/** As `named` and `only`. */
export function onlyNamed<Fields extends TProperties>(
  id: string,
  says: string,
  fields: Fields,
): TObject<Fields> {
  return Type.Object(fields, { $id: id, additionalProperties: false, description: says })
}

// Fields that several calls have.

/** getMe returns such a name: a lone surrogate or a control character would break strict clients there. */
export const namePattern = '^[^\\u0000-\\u001f\\u007f\\ud800-\\udfff]{1,64}$'

export function botId(): TInteger {
  return integer('The id of a bot.', { minimum: botIdMin, maximum: botIdMax })
}

export function updateId(says = 'The id of an update.'): TInteger {
  return integer(says, { minimum: 1, maximum: updateIdMax })
}

export function jobId(): TInteger {
  return integer('The id of a replay.', { minimum: 1, maximum: jobIdMax })
}

export function shard(): TInteger {
  return integer('The number of a shard.', { minimum: 0 })
}

/** A number of something. */
export function count(says: string): TInteger {
  return integer(says, { minimum: 0, maximum: Number.MAX_SAFE_INTEGER })
}

/** A point in time in whole seconds. */
export function time(says: string): TInteger {
  return shown('time', count(`${says}${inUnixSeconds}`))
}

/** A point in time that is asked for, at most this late. */
export function timeUpTo(maximum: number, says: string): TInteger {
  return shown('time', integer(`${says}${inUnixSeconds}`, { minimum: 0, maximum }))
}

/** How times are sent. The command line does not say this of an option, which takes other forms of a time, too. */
export const inUnixSeconds = ' In Unix seconds.'

/** A point in time that whole seconds are too coarse for. */
export function preciseTime(says: string): TNumber {
  return shown('time', number(`${says} In Unix seconds, with milliseconds.`, { minimum: 0 }))
}

/** How long ago something was, in whole seconds. */
export function age(says: string): TInteger {
  return shown('age', count(says))
}

export function bytes(says: string): TInteger {
  return shown('bytes', count(says))
}

/** A text that somebody has chosen to name something. People see its beginning where there is no place for more. */
export function name(...said: Said<TStringOptions>): TString {
  return shown('name', text(...said))
}

/** A sentence that says why something is as it is, such as an error. People always see all of it. */
export function reason(...said: Said<TStringOptions>): TString {
  return shown('reason', text(...said))
}

/** How often something may be in a second. */
export function perSecond(says: string): TInteger {
  return shown('rate', count(says))
}

/** A time that something took, in whole milliseconds. */
export function ms(says: string): TInteger {
  return shown('ms', count(says))
}

/** How long a share of updates took at most, such as `Half`. */
export function percentileMs(share: string) {
  const says = `${share} of the updates took no longer. In milliseconds; null without any.`
  return orNull(shown('ms', number(says, { minimum: 0 })))
}

export function idempotencyKey(
  says = `1 to ${idempotencyKeyLengthMax} printable ASCII characters`,
): TString {
  return text(says, { pattern: `^[\\x20-\\x7e]{1,${idempotencyKeyLengthMax}}$` })
}

/** A field that only what has a trace has. */
export function traceparent(says: string) {
  return optional(text(says, { pattern: '^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$' }))
}

/** How a bot gets its updates. */
export function mode() {
  return oneOf(['polling', 'webhook'])
}

/** The health of a queue. */
export function health() {
  return oneOf(healthWords)
}

/** What a key may do. */
export function scopeList(...said: Said<TArrayOptions>) {
  return list(oneOf(scopes), ...said)
}

/** The fields of fieldValues.botNames. */
export function botNames() {
  return {
    bot_id: botId(),
    first_name: name(),
    username: name(),
    created_at: time('When the bot was registered.'),
  }
}

/** A header of a request or of a response. */
export function shownHeader() {
  return named('ShownHeader', { name: text(), value: text() })
}

/** An attempt to deliver an update. */
export function attempt() {
  return named('Attempt', {
    time: preciseTime('When the attempt ended.'),
    update_id: orNull(updateId()),
    address: orNull(text()),
    status: orNull(integer({ minimum: 100, maximum: 999 })),
    duration_ms: ms('How long it took, in milliseconds.'),
    error: orNull(reason()),
    response_body: orNull(
      reason(
        'The beginning of the response to an attempt that failed, as text without secrets; null if it is not kept (`--attempt-body`).',
      ),
    ),
    response_headers: orNull(
      list(
        shownHeader(),
        'Some headers of this response, without secrets; null if its body would not be kept either.',
      ),
    ),
    next_retry: orNull(preciseTime('When the update is tried again at the earliest.')),
    traceparent: traceparent('The place in its trace that the endpoint got.'),
  })
}

/** A damaged place in a file. */
export function fileDamage<More extends TProperties>(more: More) {
  return object({
    ...more,
    file: text('The path of the file, or of the directory of the shard.'),
    offset: optional(count('Where the damage is in the file, in bytes.')),
    reason: text('What was found.'),
  })
}

/** The number of things that a call has removed. */
export function removedCount() {
  return named('RemovedCount', 'The number of what was removed.', {
    removed: integer('How many there were.', { minimum: 0 }),
  })
}

/** A list starts above this id. */
export function listAfter(maximum: number): TInteger {
  return integer({ minimum: 0, maximum, default: 0 })
}

/** The length of a list. */
export function listLimit(maximum: number, usual: number): TInteger {
  return integer({ minimum: 1, maximum, default: usual })
}

/** How many seconds what is replaced stays valid. */
export function overlap(maximum: number) {
  return optional(duration({ minimum: 0, maximum }))
}

/** A number of seconds that is asked for, at least and at most so many. */
export function duration(
  ...said: Said<TNumberOptions & Readonly<Record<'minimum' | 'maximum', number>>>
): TInteger {
  return shown('duration', integer(...said))
}

/**
 * How the command line shows a field of a result, told once, in the schema of the field. It is no part of the document of
 * the API: neither JSON nor the check of a request sees a symbol.
 *
 *     time    seconds since 1970, as a date        ms      milliseconds, of which the head of a column says it
 *     age     seconds, as the largest unit         rate    per second, which the head of a column says shorter
 *     bytes   as the largest unit                  duration  seconds that somebody has chosen, exactly
 *     name    a text that may be cut                reason  a text that is never cut, and has lines of its own
 *
 * A field that may be null may have a word for that, such as `all`. Any other number, such as an id, is shown as its digits.
 */
export type ShownAs = 'time' | 'age' | 'duration' | 'bytes' | 'ms' | 'rate' | 'name' | 'reason'

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
