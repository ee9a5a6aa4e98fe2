/** An option of a command that is a field of a call: its values and its default are those of the schema. */
import { type Static, type TProperties, type TSchema, Type } from 'typebox'
import { anyText, type Kind, oneOf, onOff, wholeNumber } from '../../config/config-values.ts'
import type { ValueRow } from '../commands/command-call.ts'
import type { OperationRow, Unchanging } from '../../operations/operation.ts'

type FieldsOf<Row extends OperationRow> = Row['query'] extends () => TProperties
  ? ReturnType<Row['query']>
  : never

/** A field of a query as an option. */
export type FieldOption<Row extends OperationRow, Name extends keyof FieldsOf<Row>> = ValueRow<
  NonNullable<Unchanging<Static<FieldsOf<Row>[Name]>>>
> & { readonly sentence: string; readonly defaultShown?: string }

/**
 * Returns a field of the query of a call as an option.
 *
 * @param operation - the call
 * @param field - the name of the field
 * @param texts - what people read; the default of the schema is shown unless `defaultShown` is given
 */
export function fieldOption<
  Row extends OperationRow & { readonly query: () => TProperties },
  Name extends keyof FieldsOf<Row> & string,
>(
  operation: Row,
  field: Name,
  texts: { readonly sentence: string; readonly defaultShown?: string },
): FieldOption<Row, Name> {
  const schema = operation.query()[field] ?? Type.Unknown()
  const usual = 'default' in schema ? { default: String(schema.default) } : {}
  const name = field.replaceAll('_', '-')
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the kind parses the values of the schema
  return { name, kind: kindOf(schema), ...usual, ...texts } as FieldOption<Row, Name>
}

function kindOf(schema: TSchema): Kind<unknown> {
  if (Type.IsBoolean(schema)) return onOff
  if (Type.IsEnum(schema)) return oneOf(schema.enum.map(String))
  if (!Type.IsInteger(schema)) return anyText
  const bound = (name: 'minimum' | 'maximum'): number =>
    Number(Object.entries(schema).find(([key]) => key === name)?.[1])
  return wholeNumber(bound('minimum'), bound('maximum'))
}
