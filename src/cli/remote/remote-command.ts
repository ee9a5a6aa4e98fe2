/**
 * A command that makes a call of the private API. What it takes, sends and prints is derived from the row of the call. The
 * command only says what differs, or does more.
 *
 *     command of the row      its name
 *     summary                 what its help says
 *     path                    its first arguments: <bot_id> for :id, and so on
 *     query, body             an option for each field, or for each that `fields` names: its name, values, default and text
 *     it is about a queue     --test
 *     result                  what people read: result-lines.ts
 */
import { parseAddedType } from '../../kit/added-type.ts'
import { type TProperties, type TSchema, Type } from 'typebox'
import {
  anyText,
  decimal,
  type Kind,
  listOf,
  oneOf,
  onOff,
  refused,
  wholeNumber,
} from '../../config/config-values.ts'
import type { OptionRow } from '../../config/config-options.ts'
import { inUnixSeconds, shownAsOf } from '../../api/words.ts'
import { ConfigError } from '../../config/config.ts'
import { span } from '../../config/duration.ts'
import { timePoint } from '../../config/time-point.ts'
import { systemClock, utcText } from '../../kit/clock.ts'
import { jobIdMax, updateIdMax } from '../../kit/limits.ts'
import {
  type BodyOf,
  type Operation,
  type OperationRow,
  type QueryOf,
  querySchema,
  type ResultOf,
} from '../../api/operation.ts'
import type { CallResult, InputOf } from '../../api/target-of.ts'
import type { CommandCall, ValueRow } from '../commands/command-call.ts'
import type { ArgumentRow, ParsedCommand } from '../commands/command-row.ts'
import { printResult, tellIncomplete } from '../output/print-result.ts'
import { listOptions, View } from '../output/view.ts'
import { privateApiOf, remoteOptions } from './private-api-of.ts'
import { fieldNames } from './cells.ts'
import { botKind, idOf, keyKind } from './id-of.ts'
import { listIn, resultLines } from './result-lines.ts'

export const botIdArgument = {
  name: '<bot_id>',
  kind: botKind,
  sentence: 'Id of the bot, the number before the colon of its token, or its @username.',
} as const
export const updateIdArgument = {
  name: '<update_id>',
  kind: wholeNumber(1, updateIdMax),
  sentence: 'Id of the update.',
} as const
const keyIdArgument = {
  name: '<key_id>',
  kind: keyKind,
  sentence: 'Id of the key, the part after pbk_, or its name.',
} as const
const jobIdArgument = {
  name: '<job_id>',
  kind: wholeNumber(1, jobIdMax),
  sentence: 'Id of the replay, as `updates replay` has printed it.',
} as const
export const testOption = {
  name: 'test',
  kind: onOff,
  sentence: "Addresses the bot's /test/ queue.",
} as const

/** By the parameters of paths. */
const pathArguments = new Map<string, ArgumentRow>([
  ['id', botIdArgument],
  ['update_id', updateIdArgument],
  ['key_id', keyIdArgument],
  ['job_id', jobIdArgument],
])

/** What an option says in place of the schema of its field. */
type FieldTexts = Partial<Omit<OptionRow, 'name'>>

type FieldOf<Row extends OperationRow> = (
  | keyof QueryOf<Row>
  | (BodyOf<Row> extends undefined ? never : keyof NonNullable<BodyOf<Row>>)
) &
  string

interface RemoteCommandParts<Row extends Operation> {
  /** Default: the summary of the call. */
  readonly sentence?: string
  /** After those of the path. One that has the name of a field is that field. */
  readonly arguments?: readonly ArgumentRow[]
  /** The fields that are options. Default: all, unless the command does more. */
  readonly fields?: { readonly [Name in FieldOf<Row>]?: FieldTexts }
  /** Those that are no fields of the call. */
  readonly options?: readonly OptionRow[]
  readonly otherwise?: string
}

/** The command makes the call and prints its result. */
interface PrintingParts<Row extends Operation> extends RemoteCommandParts<Row> {
  /** Returns the result for people, if that is not what the row says. */
  readonly lines?: (result: ResultOf<Row>, view: View) => readonly string[]
}

/** The command does more, with the input of the call. */
interface RunningParts<Row extends Operation> extends RemoteCommandParts<Row> {
  run(call: CommandCall, input: InputOf<Row>): Promise<void>
}

export function remoteCommand<Row extends Operation>(
  operation: Row,
  parts: PrintingParts<Row> | RunningParts<Row> = {},
): ParsedCommand {
  const params = [...operation.path.matchAll(/:(\w+)/g)].map(([, name = '']) => name)
  const schemas = schemasOf(operation)
  const all = 'run' in parts ? {} : fieldsOf(schemas)
  const named = Object.entries<FieldTexts | undefined>(parts.fields ?? all)
  const fields = named.map(([field, texts]) => optionOf(field, schemas, texts))
  const row = {
    kind: 'parsed',
    name: operation.command ?? '',
    sentence: parts.sentence ?? sentenceOf(operation),
    arguments: [
      ...params.flatMap((name) => pathArguments.get(name) ?? []),
      ...(parts.arguments ?? []),
    ],
    options: [
      ...fields,
      ...(parts.options ?? []),
      ...('test' in schemas.query ? [testOption] : []),
      ...(operation.columns === undefined ? [] : listOptionsOf(operation)),
      ...remoteOptions,
    ],
  } as const
  const run = async (call: CommandCall): Promise<void> => {
    // What cannot be shown as asked is not called for.
    View.of(call)
    const given = [...row.arguments, ...row.options].map((each) => [fieldOf(each), each] as const)
    const of = async (properties: TProperties): Promise<object | undefined> => {
      const own = given.filter(([field]) => field in properties)
      if (own.length === 0) return undefined
      return valuesOf(call, own)
    }
    const [query, body] = [await of(schemas.query), await of(schemas.body)]
    for (const times of [query, body]) assertOrder(Object(times))
    const inPath = params.map((name) => [name, pathArguments.get(name)] as const)
    const path = await valuesOf(call, inPath)
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the kinds parse the values of the schemas
    const input = { ...path, query, body } as InputOf<Row>
    if ('run' in parts) return parts.run(call, input)
    const result = await (await privateApiOf(call)).call(operation, input)
    if (parts.lines === undefined) printCall(call, operation, result, input)
    else {
      printResult(call, result, parts.lines)
      tellIncomplete(Object(result.value))
    }
  }
  const { otherwise } = parts
  return { ...row, ...(otherwise !== undefined && { otherwise }), run }
}

/** Between times in the wrong order there is nothing, which would look as if nothing had happened. */
function assertOrder({ since, until }: { readonly since?: number; readonly until?: number }): void {
  if (since === undefined || until === undefined || since < until) return
  const [from, to] = [since, until].map((seconds) => utcText(seconds * 1_000))
  throw new ConfigError([`--since: expected a time before that of --until (${to}), got ${from}`])
}

function listOptionsOf({ result }: Operation): readonly OptionRow[] {
  const list = listIn(result?.() ?? Type.Unknown())
  return listOptions(list === undefined ? [] : fieldNames(list.item))
}

/** Prints the result of a call as its row says, and what it does not cover. */
export function printCall<Row extends Operation>(
  call: CommandCall,
  operation: Row,
  result: CallResult<Row>,
  input: InputOf<Row>,
): void {
  const value: object = Object(result.value)
  printResult(call, result, (_, view) => resultLines(operation, value, view, input))
  tellIncomplete(value)
}

/** The summary of a call as the end of a sentence that begins with the command, which shows what the call returns. */
function sentenceOf({ summary }: Operation): string {
  const shown = summary.replace(/^Returns /, 'Shows ')
  return `${shown.charAt(0).toLowerCase()}${shown.slice(1)}`
}

/** The fields of a call with the texts of their schemas. `test` is the option of all calls about a queue. */
function fieldsOf({ query, body }: Schemas): Readonly<Record<string, FieldTexts>> {
  const names = Object.keys({ ...query, ...body }).filter((name) => name !== 'test')
  return Object.fromEntries(names.map((name) => [name, {}]))
}

/** Returns a field of a call as an option, for a command that makes that call beside another one. */
export function fieldOption<T>(
  operation: Operation,
  field: string,
  texts: FieldTexts,
): ValueRow<T> & Omit<OptionRow, 'kind'> {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the caller names the type of the field
  return optionOf(field, schemasOf(operation), texts) as ValueRow<T> & OptionRow
}

/** Of a field that selects: without it, all values are. */
export const anyValue = { defaultShown: 'any' } as const

/** The field `type` of a call as an option. An option has the same values in all commands, and `--type` is that of events. */
export function updateTypeOption(operation: Operation): ValueRow<string> & Omit<OptionRow, 'kind'> {
  const { kind, ...row } = fieldOption<string>(operation, 'type', anyValue)
  return { ...row, kind: withAddedTypes(kind), name: 'update-type' }
}

/** The server knows its added types, and this command does not. */
function withAddedTypes(kind: Kind<string>): Kind<string> {
  return {
    ...kind,
    expected: `${kind.expected}, or a type that the server has besides`,
    parse: (text) => parseAddedType(text)?.name ?? refused,
  }
}

interface Schemas {
  readonly query: TProperties
  readonly body: TProperties
}

function schemasOf(operation: Operation): Schemas {
  const body = operation.body?.()
  const object = Type.IsUnion(body) ? body.anyOf.find(Type.IsObject) : body
  return {
    query: querySchema(operation)?.properties ?? {},
    body: Type.IsObject(object) ? object.properties : {},
  }
}

const required = 'none; required'

function optionOf(field: string, { query, body }: Schemas, texts: FieldTexts = {}): OptionRow {
  const schema = query[field] ?? body[field] ?? Type.Unknown()
  const usual = 'default' in schema ? { default: String(schema.default) } : {}
  const shown = 'default' in schema || Type.IsOptional(schema) ? {} : { defaultShown: required }
  const sentence = 'description' in schema ? String(schema.description) : ''
  const name = field.replaceAll('_', '-')
  const kind = isTime(schema) && field === 'since' ? timePoint(systemClock, 'now') : kindOf(schema)
  return { name, kind, sentence: sentence.replace(inUnixSeconds, ''), ...usual, ...shown, ...texts }
}

/** Returns the name of the field that an argument or an option has. */
function fieldOf({ name }: ArgumentRow | OptionRow): string {
  return name.replace(/[[\]<>]/g, '').replaceAll('-', '_')
}

function valueOf(call: CommandCall, row: ArgumentRow | OptionRow | undefined): unknown {
  if (row === undefined) return undefined
  return 'defaultShown' in row && row.defaultShown === required ? call.need(row) : call.get(row)
}

/** Returns the values of rows by the names of their fields. */
async function valuesOf(
  call: CommandCall,
  rows: readonly (readonly [field: string, row: ArgumentRow | OptionRow | undefined])[],
): Promise<object> {
  const values: [string, unknown][] = []
  for (const [field, row] of rows) {
    const value = valueOf(call, row)
    const isNamed = row !== undefined && value !== undefined
    values.push([field, isNamed ? await idOf(call, row.kind, value) : value])
  }
  return Object.fromEntries(values)
}

function isTime(schema: TSchema): boolean {
  return shownAsOf(schema) === 'time'
}

function kindOf(schema: TSchema): Kind<unknown> {
  const bound = (name: 'minimum' | 'maximum' | 'minItems'): number =>
    Number(Object.entries(schema).find(([key]) => key === name)?.[1])
  if (isTime(schema)) return timePoint(systemClock)
  if (shownAsOf(schema) === 'duration') return span(bound('minimum'), bound('maximum'))
  if (Type.IsUnion(schema)) return orNone(kindOf(schema.anyOf[0] ?? Type.Unknown()), null)
  if (Type.IsArray(schema)) return listOf(kindOf(schema.items), bound('minItems'))
  if (Type.IsBoolean(schema)) return onOff
  if (Type.IsEnum(schema)) return oneOf(schema.enum.map(String))
  if (Type.IsLiteral(schema)) return oneOf([String(schema.const)])
  if (Type.IsInteger(schema)) return wholeNumber(bound('minimum'), bound('maximum'))
  return Type.IsNumber(schema) ? decimal(bound('minimum'), bound('maximum')) : anyText
}

/** The word none stands for `value`. */
export function orNone<T, None>(kind: Kind<T>, value: None): Kind<T | None> {
  const parse = (text: string): T | None | typeof refused =>
    text === 'none' ? value : kind.parse(text)
  if (kind.words !== undefined) return { ...oneOf([...kind.words, 'none']), parse }
  const placeholder = `${kind.placeholder}|none`
  return { ...kind, expected: `${kind.expected}, or none`, placeholder, parse }
}
