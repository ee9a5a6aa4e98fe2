/**
 * Logs a browser in and out, and says what a key or a session may do. The key is sent as in every other call, in the
 * Authorization header, so the hook of private-api.ts has checked it and counted a wrong one before a route runs.
 *
 * All workers of a node know an ended session from the memory that they share; the other nodes are told.
 */
import type { FastifyInstance } from 'fastify'
import * as is from '../../api/words.ts'
import { type Access } from '../../api/access.ts'
import { accessKeysMax } from '../../kit/limits.ts'
import { scopes } from '../../kit/rights.ts'
import type { ResultOf } from '../../api/operation.ts'
import { sessionOperations } from './session-operations.ts'
import { addOperations } from '../../private-api/add-operations.ts'
import { type AskingRoute, askWorkers } from '../../links/ask/ask-workers.ts'
import { addAnswers, type AnswersTo, asks } from '../../links/ask/question.ts'
import { requestAccess } from '../../access/request-access.ts'
import type { Modules } from '../../kit/modules.ts'
import type { ApiHooks } from '../../private-api/hooks.ts'
import type { PrivateApiParts } from '../../private-api/private-api-parts.ts'

type Options = Pick<PrivateApiParts, 'guard' | 'isTls' | 'takesForeignTokens'> &
  AskingRoute & { readonly modules: Modules<ApiHooks> }
type Rights = ResultOf<typeof sessionOperations.getSession>

export const sessionQuestions = {
  /** A session has ended: its number, and the place of its key. */
  sessionEnded: asks<
    { readonly slot: number; readonly session: string },
    Readonly<Record<string, never>>
  >('session-ended', () =>
    is.only({
      slot: is.integer({ minimum: 0, maximum: accessKeysMax }),
      session: is.text({ pattern: '^[0-9]{1,19}$' }),
    }),
  ),
}

export function addSessionRoutes(app: FastifyInstance, options: Options): void {
  const { guard, isTls = false } = options
  const answers: AnswersTo<typeof sessionQuestions> = {
    async sessionEnded({ slot, session }) {
      guard.ended.end(slot, BigInt(session))
      return {}
    },
  }
  addAnswers(app, sessionQuestions, answers, options)
  // The page asks for the token of another server only then.
  const taken = {
    ...(options.takesForeignTokens === true ? { foreign_tokens: true as const } : {}),
    ...options.modules.fieldsOf('sessionFields'),
  }
  addOperations(app, sessionOperations, {
    async beginSession({ request: { headers }, reply }) {
      // A session must not prolong itself: a stolen cookie would last forever.
      const access = guard.checkKey(headers.authorization)
      const isSecure = isTls || headers['x-forwarded-proto'] === 'https'
      const { setCookie, expiresAtS } = guard.sessions.create(access, isSecure)
      void reply.header('set-cookie', setCookie)
      return { expires: expiresAtS }
    },
    getSession: async ({ request }) => ({ ...accessJson(requestAccess(request)), ...taken }),
    async endSession({ request, reply }) {
      const ending = guard.sessionToEnd(request.raw)
      if (ending !== undefined) {
        const { slot, session } = ending
        const owners = options.ownersOf(request)
        const input = { slot, session: `${session}` }
        await askWorkers({ ...options, answers, owners }, sessionQuestions, 'sessionEnded', input)
      }
      void reply.header('set-cookie', [...guard.sessions.removal])
      return { ended: true as const }
    },
  })
}

function accessJson(access: Access): Rights {
  if (access === 'root') return { key_id: null, name: null, scopes: ['all'], bots: null }
  const { id, name, bots } = access
  return {
    key_id: id,
    name,
    scopes: scopes.filter((scope) => access.scopes.has(scope)),
    bots: bots === undefined ? null : [...bots],
  }
}
