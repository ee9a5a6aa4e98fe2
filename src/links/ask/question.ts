/**
 * What the workers of a server ask each other, beside the requests of clients. A feature declares its questions beside the calls
 * that ask them, and answers them there (`addAnswers`).
 *
 * On the link (links/link), a question is a POST request to `/internal/<path>`, with its fields in the query, or as JSON in the
 * body, and the answer is JSON. Nodes of the version before ask and answer in the same way, so a row changes only as records on
 * disk do: a new field is optional, and a new question has a new path.
 */
import assert from 'node:assert/strict'
import type { TSchema } from 'typebox'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { portalPrefix } from '../../http/target.ts'
import { PostboteError } from '../../kit/errors.ts'

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

/**
 * Adds the route of each question; none below `/portal`, where nobody asks. Clients get NOT_FOUND, also with the admin key.
 *
 * @param api - knows whether another worker sent a request
 */
export function addAnswers<Questions extends Readonly<Record<string, Question<never, unknown>>>>(
  app: FastifyInstance,
  questions: Questions,
  answers: AnswersTo<Questions>,
  api: { isForwarded(request: FastifyRequest): boolean },
): void {
  if (app.prefix === portalPrefix) return
  const onRequest = async (request: FastifyRequest): Promise<void> => {
    if (!api.isForwarded(request)) throw new PostboteError('NOT_FOUND')
  }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the schema has checked a query, and workers send bodies as typed
  const byName = answers as Readonly<Record<string, (input: unknown) => Promise<unknown>>>
  for (const [name, { path: url, query }] of Object.entries<Question<never, unknown>>(questions)) {
    assert(byName[name] !== undefined, `this worker answers the question ${name}`)
    const schema = query === undefined ? {} : { querystring: query() }
    app.post(url, { schema, onRequest }, (request) =>
      byName[name]?.(query === undefined ? request.body : request.query),
    )
  }
}
