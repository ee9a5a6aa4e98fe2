/**
 * What the workers of a server ask each other, beside the requests of clients. A feature declares its questions beside the calls
 * that ask them, and answers them there (add-answers.ts).
 *
 * On the link (links/link), a question is a POST request to `/internal/<path>`, with its fields in the query, or as JSON in the
 * body, and the answer is JSON. Nodes of the version before ask and answer in the same way, so a row changes only as records on
 * disk do: a new field is optional, and a new question has a new path.
 */
import type { TSchema } from 'typebox'

/** A question, with the types of its input and of its answer. */
export interface Question<Input, Answer> {
  readonly path: string
  /** The schema of an input that is sent as a query. Any other input is sent as JSON. */
  readonly query?: (() => TSchema | undefined) | undefined
  /** Only for the compiler. */
  readonly types?: (input: Input) => Answer
}

type TypesOf<Row extends Question<never, unknown>> = NonNullable<Row['types']>
export type InputOf<Row extends Question<never, unknown>> = Parameters<TypesOf<Row>>[0]
export type AnswerOf<Row extends Question<never, unknown>> = ReturnType<TypesOf<Row>>

/** What a worker answers to each of some questions. */
export type AnswersTo<Rows extends Readonly<Record<string, Question<never, unknown>>>> = {
  readonly [Name in keyof Rows]: (input: InputOf<Rows[Name]>) => Promise<AnswerOf<Rows[Name]>>
}

/**
 * Declares a question.
 *
 * @param path - how it is called on the link
 */
export function asks<Input, Answer>(
  path: string,
  query?: Question<Input, Answer>['query'],
): Question<Input, Answer> {
  return { path: `/internal/${path}`, query }
}
