/** What a client sends for a call: derived from its row, so a path stands nowhere else. Pure. */
import type { BodyOf, Operation, OperationRow, ParamNames, QueryOf, ResultOf } from './operation.ts'

/** What a caller says for a call. Fields of the query with a default may be left out. */
export type InputOf<Row extends OperationRow> = ParamsOf<Row> & {
  readonly query?: { readonly [Name in keyof QueryOf<Row>]?: QueryOf<Row>[Name] | undefined }
  readonly body?: BodyOf<Row> | undefined
}

type ParamsOf<Row extends OperationRow> = {
  readonly [Name in ParamNames<Row['route']>]: string | number
}

/** The result of a call: the text, which may have digits that JavaScript loses, and what it says. */
export interface CallResult<Row extends OperationRow = OperationRow> {
  readonly text: string
  readonly value: ResultOf<Row>
}

/**
 * Returns the target of a call.
 *
 * @param operation - the call, or one that is not known by its id
 * @param input - the values of its parameters by their names, and its query; what is undefined or false is left out
 */
export function targetOf(
  { path }: Pick<Operation, 'path'>,
  input: { readonly query?: object | undefined },
): string {
  const params: ReadonlyMap<string, unknown> = new Map(Object.entries(input))
  const filled = path.replaceAll(/:(\w+)/g, (_, name: string) =>
    encodeURIComponent(String(params.get(name))),
  )
  const given = Object.entries(input.query ?? {}).filter(
    ([, value]) => value !== undefined && value !== false,
  )
  const query = new URLSearchParams(
    given.map(([name, value]): [string, string] => [name, String(value)]),
  )
  return given.length === 0 ? filled : `${filled}?${query.toString()}`
}
