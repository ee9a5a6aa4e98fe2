/** Adds the routes on which other workers ask this one (question.ts). */
import assert from 'node:assert/strict'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { portalPrefix } from '../../http/target.ts'
import { PostboteError } from '../../kit/errors.ts'
import type { AnswersTo, Question } from './question.ts'

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
